/**
 * Makes sure that only one process uses a data folder. A lock is a numbered file, and its holder listens on a socket in the same folder. A
 * holder is alive as long as its socket accepts connections. Process ids are not used, because they differ between containers. The system
 * closes the socket when the process dies. Decision 0011 gives the reasons.
 */
import { existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { ConfigError } from '../../config.ts'
import { bootUuid } from '../../values/ids.ts'

export interface FolderLock {
  release(): Promise<void>
}

interface Holder {
  readonly pid: number
  readonly token: string
}

/** Maximum number of attempts when other processes start at the same time. */
const attemptsMax = 20
/** The longest socket path in bytes that every system accepts. */
const socketPathMaxBytes = 100

const lockName = (generation: number): string => `brigade.lock.${generation}`
const lockPattern = /^brigade\.lock\.(\d+)$/

/**
 * Locks the folder for this process, and makes the folder if necessary. The lock of a killed process is taken over. Throws ConfigError that names the
 * process with the lock.
 *
 * Two processes can never have the lock. The holder of the highest number owns the folder. A process first listens on its socket. Then it takes a number
 * with `link`, which fails when the file exists. It keeps the number only if the number is still the highest afterwards. Only a later holder deletes the
 * numbers of dead processes, so the highest number never decreases.
 */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const path = resolve(folder)
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const token = bootUuid()
  const server = await listenIn(path, token)
  const draft = join(path, `brigade.lock.draft-${token}`)
  writeFileSync(draft, JSON.stringify({ pid: process.pid, token } satisfies Holder), { mode: 0o600 })
  const stop = async (): Promise<void> => {
    await new Promise<void>(done => server.close(() => done()))
    rmSync(draft, { force: true })
    if (process.platform !== 'win32') rmSync(join(path, socketName(token)), { force: true })
  }
  try {
    await take(path, draft)
  } catch (error) {
    await stop()
    throw error
  }
  rmSync(draft, { force: true })
  let released: Promise<void> | null = null
  return {
    release() {
      // The numbered file is not deleted, because its number could then be taken twice. It now names a holder that does not answer.
      released ??= stop()
      return released
    },
  }
}

async function take(path: string, draft: string): Promise<void> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const highest = Math.max(0, ...generations(path))
    const holder = highest === 0 ? null : readHolder(join(path, lockName(highest)))
    if (highest > 0 && holder === null) continue
    if (holder !== null && (await isAlive(path, holder.token)))
      throw new ConfigError(
        `The data folder ${path} is in use by process ${holder.pid}. One folder serves one process: stop that process, or give this one another DATA_DIR.`,
      )
    const mine = highest + 1
    try {
      linkSync(draft, join(path, lockName(mine)))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue
      throw error
    }
    if (Math.max(...generations(path)) === mine) {
      removeOlder(path, mine)
      return
    }
    rmSync(join(path, lockName(mine)), { force: true })
  }
  throw new ConfigError(`The data folder ${path} could not be locked: other processes keep taking it.`)
}

function generations(path: string): number[] {
  return readdirSync(path).flatMap(name => {
    const match = lockPattern.exec(name)
    return match === null ? [] : [Number(match[1])]
  })
}

/** Returns null when the file does not exist any more, because a later holder has deleted it. */
function readHolder(file: string): Holder | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Deletes the lock files of dead processes, and sockets that remained after a kill. */
function removeOlder(path: string, mine: number): void {
  for (const generation of generations(path)) {
    if (generation >= mine) continue
    const file = join(path, lockName(generation))
    const holder = readHolder(file)
    rmSync(file, { force: true })
    if (holder !== null && process.platform !== 'win32') rmSync(join(path, socketName(holder.token)), { force: true })
  }
}

const socketName = (token: string): string => `lock-${token.slice(0, 8)}.sock`

/**
 * Returns a socket path that the system accepts: a named pipe on Windows, or a short path through a symbolic link when the direct path is
 * too long.
 */
function socketAddress(path: string, token: string): { address: string; forget(): void } {
  if (process.platform === 'win32') return { address: `\\\\.\\pipe\\brigade-${token}`, forget() {} }
  const direct = join(path, socketName(token))
  if (Buffer.byteLength(direct) <= socketPathMaxBytes) return { address: direct, forget() {} }
  const detour = mkdtempSync(join(tmpdir(), 'bg-'))
  symlinkSync(path, join(detour, 'd'), 'dir')
  return { address: join(detour, 'd', socketName(token)), forget: () => rmSync(detour, { recursive: true, force: true }) }
}

async function listenIn(path: string, token: string): Promise<Server> {
  const { address, forget } = socketAddress(path, token)
  const server = createServer(socket => socket.destroy())
  try {
    await new Promise<void>((done, failed) => server.once('error', failed).listen(address, done))
  } catch (cause) {
    throw new ConfigError(`The data folder ${path} cannot be locked, because its file system takes no sockets. Choose another DATA_DIR.`, { cause })
  } finally {
    forget()
  }
  server.unref()
  return server
}

/** Returns whether the process with the lock still accepts connections. The system accepts for a busy process too. */
async function isAlive(path: string, token: string): Promise<boolean> {
  if (process.platform !== 'win32' && !existsSync(join(path, socketName(token)))) return false
  const { address, forget } = socketAddress(path, token)
  try {
    return await new Promise<boolean>(answer => {
      const socket = connect(address)
      socket.once('connect', () => answer(true))
      // Only these two errors prove that the process is dead. After any other error, such as a full queue or missing permission, it counts as alive.
      socket.once('error', (error: NodeJS.ErrnoException) => answer(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT'))
      socket.once('connect', () => socket.destroy())
    })
  } finally {
    forget()
  }
}
