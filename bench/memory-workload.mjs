/** The objects of the memory bench: half of them have 1 KiB and half have 16 KiB. */
import { randomBytes } from 'node:crypto'

/** Number of objects that are read and overwritten. It is a multiple of every number of connections, so that each connection has its own objects. */
export const objectsOfRun = 320

const sizes = [1024, 16 * 1024]
const bodies = sizes.map(size => Buffer.from(randomBytes(size / 2).toString('hex')))

/** Returns the content of an object. The two sizes alternate within the objects of one connection, so that every connection uses both. */
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
