/**
 * Runs a temporary PostgreSQL server for tests and benches, with the binaries of the machine. As a command, `node scripts/postgres.mjs start` prints
 * the URL and a folder, and `node scripts/postgres.mjs stop <folder>` ends the server and removes the folder.
 */
import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const isRoot = process.getuid?.() === 0
const suffix = process.platform === 'win32' ? '.exe' : ''
// The account of the server may have no access to the current folder.
const parentFolder = isRoot ? '/var/tmp' : tmpdir()

/** Returns the folder with initdb and pg_ctl of the newest version. Returns null when PostgreSQL is not installed. */
export function findPostgres() {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [...versions.map(version => join(debian, version, 'bin')), ...(process.env.PATH ?? '').split(delimiter)]
  return folders.find(folder => ['initdb', 'pg_ctl'].every(name => existsSync(join(folder, name + suffix)))) ?? null
}

/** Starts a server on a free loopback port. Its folder is created in `parent`. `stop` ends the server and removes the folder. */
export async function startPostgres(parent = parentFolder) {
  const bin = findPostgres()
  if (bin === null) throw new Error('PostgreSQL is not installed: no initdb and pg_ctl under /usr/lib/postgresql or in PATH')
  const folder = mkdtempSync(join(parent, 'brigade-postgres-'))
  try {
    // The server refuses to run as root, so it runs as the account that the PostgreSQL package created.
    if (isRoot) chownSync(folder, accountId('-u'), accountId('-g'))
    run(bin, 'initdb', ['-D', join(folder, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'])
    const port = await freePort()
    // The data need not survive a crash of the machine, so no write waits for the disk.
    const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=200`
    run(bin, 'pg_ctl', ['-D', join(folder, 'data'), '-w', '-t', '30', '-l', join(folder, 'log'), '-o', options, 'start'])
    return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, folder, stop: async () => stopPostgres(folder) }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** Ends the server of a folder that `startPostgres` made, and removes the folder. */
export function stopPostgres(folder) {
  const bin = findPostgres()
  if (bin !== null && existsSync(join(folder, 'data', 'postmaster.pid'))) run(bin, 'pg_ctl', ['-D', join(folder, 'data'), '-w', '-m', 'immediate', 'stop'])
  rmSync(folder, { recursive: true, force: true })
}

function run(bin, name, args) {
  const program = join(bin, name + suffix)
  const [file, all] = isRoot ? ['runuser', ['-u', 'postgres', '--', program, ...args]] : [program, args]
  // `stdio` must be `ignore`. The server inherits the pipes of pg_ctl, so with a pipe this call would wait until the server ends.
  execFileSync(file, all, { stdio: 'ignore', cwd: parentFolder, timeout: 60_000 })
}

function accountId(flag) {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
}

function freePort() {
  return new Promise((done, failed) => {
    const server = createServer()
    server.once('error', failed)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => done(port))
    })
  })
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [verb, folder] = process.argv.slice(2)
  if (verb === 'start') {
    const server = await startPostgres()
    console.log(`TEST_POSTGRES_URL=${server.url}\nPOSTGRES_FOLDER=${server.folder}`)
  } else if (verb === 'stop' && folder !== undefined && existsSync(join(folder, 'data', 'PG_VERSION'))) stopPostgres(folder)
  else {
    console.error('usage: node scripts/postgres.mjs start | stop <folder>')
    process.exitCode = 2
  }
}
