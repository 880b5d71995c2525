/**
 * Proves that a process of this machine is dead. The owner of a journal keeps a socket in the journal folder open, and the kernel refuses a
 * connection as soon as the owner is gone. A stopped (SIGSTOP) owner still accepts connections, so it is never taken for dead.
 */
import { existsSync, openSync, readFileSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'

/** The longest path of a socket that every Unix accepts. */
const socketPathMax = 100

/** Returns the id of the running kernel. It is the same for all containers of a machine and changes with a reboot. */
export function bootId(): string {
  const file = '/proc/sys/kernel/random/boot_id'
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : `host:${hostname()}`
}

const folderHandles = new Map<string, number>()

/** Returns the socket's address. Socket paths are short, so a deep folder is addressed through a handle. */
function socketPath(folder: string, processId: bigint): string {
  const name = `${processId}.sock`
  if (process.platform === 'win32') return join('\\\\?\\pipe', folder, name)
  const path = join(folder, name)
  if (path.length <= socketPathMax || process.platform !== 'linux') return path
  let handle = folderHandles.get(folder)
  if (handle === undefined) {
    handle = openSync(folder, 'r')
    folderHandles.set(folder, handle)
  }
  return `/proc/self/fd/${handle}/${name}`
}

/** Opens the socket that proves that this process is alive. The socket does not keep the process running. */
export function holdSocket(folder: string, processId: bigint): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(socket => socket.destroy())
    server.once('error', reject)
    server.listen(socketPath(folder, processId), () => {
      server.unref()
      resolve(server)
    })
  })
}

/** Asks the socket of a process. Returns `alive` when the owner answers, `refused` when the owner is gone, and `absent` when this folder has no such socket. */
export function askSocket(folder: string, processId: bigint): Promise<'alive' | 'refused' | 'absent'> {
  return new Promise(resolve => {
    const socket = connect(socketPath(folder, processId))
    socket.once('connect', () => {
      socket.destroy()
      resolve('alive')
    })
    socket.once('error', error => {
      const code = 'code' in error ? error.code : ''
      resolve(code === 'ECONNREFUSED' ? 'refused' : code === 'ENOENT' ? 'absent' : 'alive')
    })
  })
}

/** Removes the socket of a dead owner. */
export function removeSocket(folder: string, processId: bigint): void {
  const path = join(folder, `${processId}.sock`)
  if (process.platform !== 'win32' && existsSync(path)) unlinkSync(path)
}
