/**
 * Proof that a process of this machine is dead: its owner keeps a socket in the journal folder open, and the kernel refuses a
 * connection the moment the owner is gone. A stopped (SIGSTOP) owner still accepts, so it is never taken for dead.
 */
import { existsSync, openSync, readFileSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'

/** Longest path that every Unix takes for a socket. */
const socketPathMax = 100

/** Identifies the running kernel: the same for all containers of a machine, another after a reboot. */
export function bootId(): string {
  const file = '/proc/sys/kernel/random/boot_id'
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : `host:${hostname()}`
}

const folderHandles = new Map<string, number>()

/** The socket's address. Deep folders go through a handle of the folder, because socket paths are short. */
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

/** Opens the socket that proves this process alive. It does not keep the process running. */
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

/** Who answers on the socket of that process: its owner, nobody any more, or there is no socket in this folder. */
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

/** Removes what a dead owner left of its socket. */
export function removeSocket(folder: string, processId: bigint): void {
  const path = join(folder, `${processId}.sock`)
  if (process.platform !== 'win32' && existsSync(path)) unlinkSync(path)
}
