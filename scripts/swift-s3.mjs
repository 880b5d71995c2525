/**
 * Starts a one-node OpenStack Swift with its S3 filter on loopback, for tests. Swift verifies signatures but does not support conditional writes.
 * `isSwiftInstalled()` returns whether the servers are installed (Debian: swift-proxy swift-account swift-container swift-object). `startSwift(folder)`
 * starts them on free ports and returns how to reach and stop them. `node scripts/swift-s3.mjs FOLDER` starts one in a folder and waits.
 */
import { spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, mkdirSync, openSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { delimiter, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const services = ['account', 'container', 'object', 'proxy']
const startDeadlineMs = 30_000

/** Returns whether every Swift server and the ring builder are on the PATH. */
export function isSwiftInstalled() {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const has = name =>
    folders.some(folder => {
      try {
        accessSync(join(folder, name), constants.X_OK)
        return true
      } catch {
        return false
      }
    })
  return [...services.map(service => `swift-${service}-server`), 'swift-ring-builder'].every(has)
}

/** Starts the four servers. Resolves when the proxy answers. */
export async function startSwift(folder) {
  const root = resolve(folder)
  const etc = join(root, 'etc')
  for (const path of [etc, join(root, 'node', 'd1'), join(root, 'log')]) mkdirSync(path, { recursive: true })
  writeFileSync(join(etc, 'swift.conf'), '[swift-hash]\nswift_hash_path_suffix = test\nswift_hash_path_prefix = test\n')
  const ports = Object.fromEntries(await Promise.all(services.map(async service => [service, await freePort()])))
  for (const service of ['account', 'container', 'object']) {
    const builder = join(etc, `${service}.builder`)
    ring(builder, 'create', '6', '1', '1')
    ring(builder, 'add', `r1z1-127.0.0.1:${ports[service]}/d1`, '1')
    ring(builder, 'rebalance')
    writeFileSync(
      join(etc, `${service}-server.conf`),
      `${common(etc, ports[service])}devices = ${join(root, 'node')}\nmount_check = false\ndisable_fallocate = true\n[pipeline:main]\npipeline = ${service}-server\n[app:${service}-server]\nuse = egg:swift#${service}\n`,
    )
  }
  writeFileSync(join(etc, 'proxy-server.conf'), proxyConf(etc, ports.proxy))
  const children = services.map(service => {
    const log = openSync(join(root, 'log', `${service}.log`), 'w')
    return spawn(`swift-${service}-server`, [join(etc, `${service}-server.conf`)], { stdio: ['ignore', log, log], env: { ...process.env, SWIFT_DIR: etc } })
  })
  const stop = async () => {
    await Promise.all(
      children.map(
        child =>
          new Promise(done => {
            if (child.exitCode !== null || child.signalCode !== null) return done()
            child.once('exit', done)
            child.kill('SIGKILL')
          }),
      ),
    )
  }
  try {
    for (const service of services) await answering(ports[service], join(root, 'log', `${service}.log`))
  } catch (error) {
    await stop()
    throw error
  }
  return {
    endpoint: `http://127.0.0.1:${ports.proxy}`,
    hostPort: `127.0.0.1:${ports.proxy}`,
    accessKey: 'test:tester',
    secretKey: 'testing',
    region: 'us-east-1',
    stop,
  }
}

function ring(builder, ...args) {
  const done = spawnSync('swift-ring-builder', [builder, ...args], { encoding: 'utf8' })
  // Exit code 1 of this tool means success with a warning.
  if (done.status === null || done.status > 1) throw new Error(`swift-ring-builder ${args[0]} failed: ${done.stderr || done.stdout}`)
}

function common(etc, port) {
  return `[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = ${port}\nworkers = 0\nuser = ${process.env.USER || (process.getuid?.() === 0 ? 'root' : 'nobody')}\nswift_dir = ${etc}\nlog_level = WARNING\n`
}

function proxyConf(etc, port) {
  const filters = {
    catch_errors: '',
    cache: 'memcache_servers = 127.0.0.1:6011\n',
    listing_formats: '',
    s3api: 'location = us-east-1\n',
    tempauth: 'user_test_tester = testing .admin\n',
    bulk: '',
    slo: '',
    dlo: '',
    versioned_writes: 'allow_versioned_writes = true\n',
  }
  const sections = Object.entries(filters).map(([name, more]) => `[filter:${name}]\nuse = egg:swift#${name === 'cache' ? 'memcache' : name}\n${more}`)
  return `${common(etc, port)}[pipeline:main]\npipeline = ${Object.keys(filters).join(' ')} proxy-server\n[app:proxy-server]\nuse = egg:swift#proxy\nallow_account_management = true\naccount_autocreate = true\n${sections.join('')}`
}

function freePort() {
  return new Promise((done, fail) => {
    const server = createServer()
    server.once('error', fail)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => done(port))
    })
  })
}

async function answering(port, log) {
  const deadline = Date.now() + startDeadlineMs
  while (Date.now() < deadline) {
    const isOpen = await new Promise(done => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy()
        done(true)
      })
      socket.once('error', () => done(false))
    })
    if (isOpen) return
    await new Promise(done => setTimeout(done, 100))
  }
  throw new Error(`a Swift server did not start; see ${log}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!isSwiftInstalled()) throw new Error('Swift is not installed: apt-get install swift-proxy swift-account swift-container swift-object')
  const swift = await startSwift(process.argv[2] ?? 'swift-data')
  console.log(JSON.stringify({ endpoint: swift.endpoint, accessKey: swift.accessKey, secretKey: swift.secretKey, region: swift.region }))
  const end = () => void swift.stop().then(() => process.exit(0))
  process.once('SIGINT', end)
  process.once('SIGTERM', end)
}
