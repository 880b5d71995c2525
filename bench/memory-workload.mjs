/** What the memory lane reads and writes: objects of 1 KiB and 16 KiB, half of each. */
import { randomBytes } from 'node:crypto'

/** Objects that are there to be read and overwritten. A multiple of every number of connections, so that each connection has its own. */
export const objectsOfRun = 320

const sizes = [1024, 16 * 1024]
const bodies = sizes.map(size => Buffer.from(randomBytes(size / 2).toString('hex')))

/** The content of that object. Its size changes with every second number of a connection, so that both sizes meet every connection. */
export const bytesOf = number => bodies[(number >> 4) % 2]

export const keyOf = number => `notes/${number}.md`

/** The scenarios by name, in the order of a round. */
export const memoryScenarios = [
  { act: 'get', title: 'GET' },
  { act: 'put-new', title: 'PUT of new keys' },
  { act: 'put-over', title: 'PUT over old ones' },
].flatMap(({ act, title }) =>
  [1, 16].map(connections => ({
    name: `${act}-${connections}`,
    act,
    connections,
    title: `${title}, ${connections} connection${connections === 1 ? '' : 's'}`,
  })),
)
