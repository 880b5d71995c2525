/**
 * `node scripts/build-image.mjs` builds the Dockerfile with buildah and tries the image: as user 1000 on a read-only root, the demo runs, and the image's own
 * command starts, becomes healthy and ends with SIGTERM. The base image is made from the Node, the shell and the libraries of this machine, so nothing is pulled
 * but the packages of npm. It needs Linux, root and buildah, and takes about a minute. Nothing stays on the machine. Decision 0361 gives the reasons.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { dockerfile } from './dockerfile.mjs'
import { root } from './paths.mjs'

const imageName = 'localhost/brigade-gateway:tried'
const account = 1000
const startDeadlineMs = 60_000
const endDeadlineMs = 30_000
/** What the RUN instructions of the Dockerfile and a shell need beside Node. */
const programs = ['/bin/sh', '/usr/bin/env', '/usr/bin/install', '/bin/ln', '/bin/rm', '/bin/mkdir']
const say = text => process.stdout.write(`${text}\n`)
const output = (program, args) => execFileSync(program, args, { encoding: 'utf8', maxBuffer: 64 << 20 }).trim()

/** Copies a file of this machine, and not what a link names, to the same path below `base`. */
function copyFile(base, path) {
  const to = join(base, path.replace(/^\/(bin|lib|lib64)\//, '/usr/$1/'))
  mkdirSync(dirname(to), { recursive: true })
  if (!existsSync(to)) copyFileSync(realpathSync(path), to)
}

/** Makes the folder of the base image: Node with npm, a shell, and the C and C++ libraries. */
function makeBase(base) {
  for (const name of ['bin', 'lib', 'lib64']) {
    mkdirSync(join(base, 'usr', name), { recursive: true })
    symlinkSync(join('usr', name), join(base, name))
  }
  for (const name of ['data', 'dev', 'etc', 'proc', 'root', 'sys', 'tmp', 'usr/local/bin']) mkdirSync(join(base, name), { recursive: true })
  chmodSync(join(base, 'tmp'), 0o1777)
  for (const path of [process.execPath, ...programs]) {
    copyFile(base, path === process.execPath ? realpathSync(path) : path)
    const libraries = spawnSync('ldd', [path], { encoding: 'utf8' }).stdout.match(/\/\S+\.so\S*/g) ?? []
    for (const library of libraries) copyFile(base, library)
  }
  // Native parts of packages load libraries that Node itself does not.
  const owned = output('dpkg', ['-L', 'libc6', 'libgcc-s1', 'libstdc++6']).split('\n')
  for (const path of owned) if (/\/lib[^/]*\.so[^/]*$/.test(path) && !/\/(gconv|audit)\//.test(path)) copyFile(base, path)
  const npm = dirname(dirname(realpathSync(output('sh', ['-c', 'command -v npm']))))
  cpSync(npm, join(base, 'usr/lib/node_modules/npm'), { recursive: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(base, 'usr/bin/npm'))
  if (realpathSync(process.execPath) !== '/usr/bin/node') symlinkSync(realpathSync(process.execPath), join(base, 'usr/bin/node'))
  writeFileSync(join(base, 'etc/passwd'), `root:x:0:0:root:/root:/bin/sh\nnode:x:${account}:${account}:node:/data:/bin/sh\n`)
  writeFileSync(join(base, 'etc/group'), `root:x:0:\nnode:x:${account}:\n`)
}

/** Returns the arguments that give npm in the build the settings and certificates that npm has on this machine. They do not become part of the image. */
function npmVolumes() {
  const files = ['userconfig', 'globalconfig', 'cafile'].map(name => output('npm', ['config', 'get', name]))
  const mounts = [
    [files[0], '/root/.npmrc'],
    [files[1], '/usr/etc/npmrc'],
    [files[2], files[2]],
  ]
  return mounts.filter(([from]) => from.startsWith('/') && existsSync(from)).flatMap(([from, to]) => ['--volume', `${from}:${to}:ro`])
}

/** Builds the image below `folder`. Returns where its files are and how it runs. */
function build(folder) {
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs']
  const buildah = (...args) => output('buildah', [...storage, ...args])
  const base = join(folder, 'base')
  makeBase(base)
  const made = buildah('from', 'scratch')
  buildah('add', '--quiet', made, base, '/')
  for (const { word, rest } of dockerfile())
    if (word === 'FROM' && rest.includes(':')) buildah('commit', '--quiet', made, `docker.io/library/${rest.split(' ')[0]}`)
  const args = ['--isolation', 'chroot', '--network', 'host', '--pull=never', '--layers=false', '--format', 'docker', ...npmVolumes()]
  execFileSync('buildah', [...storage, 'bud', ...args, '--tag', imageName, root], { stdio: ['ignore', 'inherit', 'inherit'] })
  const { Docker } = JSON.parse(buildah('inspect', '--type', 'image', imageName))
  const files = buildah('mount', buildah('from', '--pull=never', imageName))
  return { files, config: Docker.config, end: () => buildah('rm', '--all') }
}

/** Returns the program and arguments that run `command` in the image: read-only, but for /data and /tmp, with the image's account and environment. */
function inImage({ files, config }, command, env) {
  const quoted = `'${files.replaceAll("'", "'\\''")}'`
  const mounts = [
    `mount --bind ${quoted} ${quoted}`,
    `mount -o remount,ro,bind ${quoted}`,
    `mount -t tmpfs -o mode=0700,uid=${account},gid=${account} tmpfs ${quoted}/data`,
    `mount -t tmpfs -o mode=1777 tmpfs ${quoted}/tmp`,
    `mount -t proc proc ${quoted}/proc`,
  ]
  const pairs = [...config.Env, 'HOME=/tmp', 'LOG_LEVEL=warn', ...Object.entries(env).map(([name, value]) => `${name}=${value}`)]
  const inside = ['/bin/sh', '-c', `cd ${config.WorkingDir} && exec "$@"`, 'sh', ...command]
  const words = ['chroot', `--userspec=${config.User}`, files, '/usr/bin/env', '-i', ...pairs, ...inside]
  return ['unshare', ['--mount', '--propagation', 'private', 'sh', '-c', `${mounts.join(' && ')} && exec "$@"`, 'sh', ...words]]
}

const freePort = () =>
  new Promise(done => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => done(port))
    })
  })

/** Runs a command in the image to its end. Throws when it does not end with 0. */
function runInImage(image, command, env = {}) {
  const [program, args] = inImage(image, command, env)
  const { status } = spawnSync(program, args, { stdio: 'inherit', timeout: startDeadlineMs })
  if (status !== 0) throw new Error(`${command.join(' ')} ended with ${status}`)
}

/** Starts the image's command, waits for its health check, and ends it with SIGTERM. */
async function tryCommand(image) {
  const env = { HOST: '127.0.0.1', PORT: String(await freePort()) }
  const [program, args] = inImage(image, image.config.Cmd, env)
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = new Promise(done => child.once('exit', (code, signal) => done(code ?? signal)))
  try {
    const [kind, ...check] = image.config.Healthcheck.Test
    if (kind !== 'CMD') throw new Error('the health check is no command')
    const [checker, checkArgs] = inImage(image, check, env)
    const endMs = performance.now() + startDeadlineMs
    while (spawnSync(checker, checkArgs, { stdio: 'ignore' }).status !== 0) {
      if (child.exitCode !== null) throw new Error(`the image's command ended with ${child.exitCode}`)
      if (performance.now() > endMs) throw new Error('the health check did not pass')
      await sleep(500)
    }
    const owner = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]
    if (owner !== String(account)) throw new Error(`the program runs as ${owner}`)
    child.kill('SIGTERM')
    const code = await Promise.race([ended, sleep(endDeadlineMs, 'no end')])
    if (code !== 0) throw new Error(`after SIGTERM the program ended with ${code}`)
  } finally {
    child.kill('SIGKILL')
  }
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-image-'))
  let image = null
  try {
    image = build(folder)
    const written = inImage(image, ['sh', '-c', `> ${image.config.WorkingDir}/written`], {})
    if (spawnSync(written[0], written[1], { stdio: 'ignore' }).status === 0) throw new Error('the root is not read-only')
    runInImage(image, ['brigade', 'demo'])
    await tryCommand(image)
    say(`The image of ${basename(resolve(root, 'Dockerfile'))} builds, runs the demo as user ${account} on a read-only root, becomes healthy and ends.`)
  } finally {
    image?.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

await main().catch(error => {
  process.stderr.write(`build-image: ${error.message}\n`)
  process.exitCode = 1
})
