import { createHash } from 'node:crypto'
import { chmodSync, rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { join, resolve } from 'node:path'

/** A command for the process that owns the embedded database. */
export interface AdminCommand {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** Maximum length of a command. A command can contain an attestation with as many calls as ATTESTATION_EVIDENCE_MAX allows. */
const commandMaxChars = 64_000_000

export type AdminHandler = (command: AdminCommand) => Promise<unknown>

/**
 * Returns the path of the socket on which the process with the embedded database receives commands. On Unix, it is a socket that only its owner may
 * open. On Windows, it is a named pipe.
 */
export function adminSocketPath(dataDir: string): string {
  if (process.platform === 'win32') return `\\\\.\\pipe\\brigade-${createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 16)}`
  const path = join(resolve(dataDir), 'admin.sock')
  // Unix limits socket paths to about 100 bytes. For a long DATA_DIR, the path is a short name in /tmp, made from a hash of the long path.
  return Buffer.byteLength(path) < 100 ? path : `/tmp/brigade-${createHash('sha256').update(path).digest('hex').slice(0, 16)}.sock`
}

/** Listens for commands. Each connection carries one JSON command and one JSON reply, each on one line. */
export async function serveAdmin(dataDir: string, handle: AdminHandler): Promise<{ close(): Promise<void> }> {
  const path = adminSocketPath(dataDir)
  if (process.platform !== 'win32') rmSync(path, { force: true })
  const server: Server = createServer(socket => {
    let text = ''
    socket.setEncoding('utf8')
    socket.on('error', () => socket.destroy())
    socket.on('data', chunk => {
      text += chunk
      if (text.length > commandMaxChars) return socket.destroy()
      const end = text.indexOf('\n')
      if (end < 0) return
      const line = text.slice(0, end)
      text = ''
      void answer(line, handle).then(reply => socket.end(`${reply}\n`))
    })
  })
  await new Promise<void>((done, failed) => {
    server.once('error', failed)
    server.listen(path, done)
  })
  if (process.platform !== 'win32') chmodSync(path, 0o600)
  return { close: () => new Promise(done => server.close(() => done())) }
}

async function answer(line: string, handle: AdminHandler): Promise<string> {
  try {
    return JSON.stringify({ ok: true, result: await handle(JSON.parse(line) as AdminCommand) })
  } catch (error) {
    return JSON.stringify({ ok: false, message: error instanceof Error ? error.message : 'failed' })
  }
}

/** Sends a command to the running process. Returns null when no process listens. Throws the error of the command. */
export function askAdmin(dataDir: string, command: AdminCommand): Promise<{ result: unknown } | null> {
  return new Promise((done, failed) => {
    const socket = connect(adminSocketPath(dataDir))
    let text = ''
    socket.setEncoding('utf8')
    socket.once('error', () => done(null))
    socket.once('connect', () => socket.write(`${JSON.stringify(command)}\n`))
    socket.on('data', chunk => {
      text += chunk
    })
    socket.once('end', () => {
      if (text === '') return done(null)
      const reply = JSON.parse(text) as { ok: boolean; result?: unknown; message?: string }
      if (reply.ok) done({ result: reply.result })
      else failed(new Error(reply.message ?? 'failed'))
    })
  })
}
