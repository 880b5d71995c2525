/**
 * `node scripts/rehearse-image.mjs` executes the Dockerfile in a folder, for machines without a container engine. It executes COPY, ENV and the npm and
 * node commands of RUN, with a separate folder for each stage. Then it starts the image's command on a real PostgreSQL with a data folder elsewhere, runs
 * the image's health check, creates an organisation, makes a call, and ends the command with SIGTERM. It cannot check the base image, accounts,
 * permissions, or the interpretation of the file by an engine. `--keep` keeps the folder.
 */
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { buildContext, dockerfile, pairsOf } from './dockerfile.mjs'
import { root } from './paths.mjs'
import { startPostgres } from './postgres.mjs'

const startDeadlineMs = 60_000
const say = text => process.stdout.write(`${text}\n`)
const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`
const baseEnv = { PATH: path, HOME: process.env.HOME ?? tmpdir() }

/** Builds every stage below `folder`. Returns the last stage with the instructions that say how it runs. */
function buildStages(folder) {
  const stages = []
  const isSeen = buildContext()
  for (const { word, flags, rest } of dockerfile()) {
    const stage = stages.at(-1)
    if (word === 'FROM') {
      const name = / AS (\S+)$/i.exec(rest)?.[1] ?? String(stages.length)
      stages.push({ name, folder: join(folder, name), cwd: join(folder, name), env: {}, command: [], health: [] })
    } else if (word === 'WORKDIR') {
      stage.cwd = join(stage.folder, rest)
      mkdirSync(stage.cwd, { recursive: true })
    } else if (word === 'ENV') Object.assign(stage.env, pairsOf(rest))
    else if (word === 'COPY') copy(stages, stage, flags.from, rest.split(/\s+/), isSeen)
    else if (word === 'RUN') runAll(stage, rest)
    else if (word === 'CMD') stage.command = JSON.parse(rest)
    else if (word === 'HEALTHCHECK') stage.health = JSON.parse(rest.slice(rest.indexOf('[')))
  }
  return stages.at(-1)
}

function copy(stages, stage, from, names, isSeen) {
  const to = names.at(-1)
  const source = from === undefined ? root : stages.find(({ name }) => name === from).folder
  for (const name of names.slice(0, -1)) {
    const here = join(source, name)
    const target = to.endsWith('/') ? join(stage.cwd, to, basename(name)) : join(stage.cwd, to)
    if (from === undefined && !isSeen(name)) throw new Error(`COPY ${name}: .dockerignore keeps it out of the build`)
    const filter = file => from !== undefined || isSeen(relative(root, file).replaceAll('\\', '/'))
    cpSync(here, target, { recursive: true, filter })
  }
}

function runAll(stage, rest) {
  for (const command of rest.split(' && ')) {
    const [program, ...args] = command.trim().split(/\s+/)
    if (program !== 'npm' && program !== 'node') {
      say(`left out: ${command.trim()}`)
      continue
    }
    // Skipped, because it would clean npm's cache of this machine.
    if (program === 'npm' && args[0] === 'cache') continue
    say(`${stage.name}: ${command.trim()}`)
    // The command gets the whole environment, because this machine may reach its registry over a proxy or with a certificate of its own.
    execFileSync(program, args, {
      cwd: stage.cwd,
      env: { ...process.env, PATH: path, ...stage.env },
      stdio: ['ignore', 'ignore', 'inherit'],
      shell: process.platform === 'win32',
    })
  }
}

/** Returns the installed packages that are only for development, or only for the build. */
function developmentPackages(app) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const development = Object.entries(packages).flatMap(([name, { dev }]) => (dev === true ? [name] : []))
  const build = Object.keys(packages['scripts/build-packages'].dependencies).map(name => `node_modules/${name}`)
  return [...development, ...build].filter(name => existsSync(join(app, name)))
}

/** Returns every file below the folder with the time of its last change, and the total size of all files in bytes. */
function filesOf(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const files = entries.map(entry => join(entry.parentPath ?? entry.path, entry.name))
  const stats = files.map(file => statSync(file))
  return {
    text: files
      .map((file, index) => `${file} ${stats[index].mtimeMs}`)
      .sort()
      .join('\n'),
    bytes: stats.reduce((sum, { size }) => sum + size, 0),
  }
}

/** Starts the image's command and resolves when it listens. */
async function start(stage, env) {
  const [program, ...args] = stage.command
  const child = spawn(program, args, { cwd: stage.cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.on('data', text => {
    said = (said + text).slice(-4000)
  })
  const exited = new Promise(resolve => child.once('exit', (code, signal) => resolve(code ?? signal)))
  const url = await new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`did not listen within ${startDeadlineMs} ms\n${said}`)), startDeadlineMs)
    createInterface({ input: child.stdout }).on('line', line => {
      const found = /listens on (http:\S+)/.exec(line)?.[1]
      if (found === undefined) return
      clearTimeout(timer)
      done(found)
    })
    void exited.then(code => failed(new Error(`ended with ${code}\n${said}`)))
  })
  return { url, child, exited }
}

function expect(what, isSo) {
  if (!isSo) throw new Error(`not so: ${what}`)
  say(`ok: ${what}`)
}

async function use(stage, env) {
  const before = filesOf(stage.cwd)
  const { url, child, exited } = await start(stage, env)
  try {
    say(`listens on ${url}`)
    const [program, ...args] = stage.health
    execFileSync(program, args, { env: { ...env, PORT: new URL(url).port }, stdio: 'ignore' })
    expect('the health check of the image succeeds', true)
    const words = ['admin', 'create', '--json', '--email', 'owner@example.test', '--org', 'Rehearsal']
    const { key } = JSON.parse(execFileSync(process.execPath, [join(stage.cwd, 'dist/cli/brigade.js'), ...words], { cwd: stage.cwd, env, encoding: 'utf8' }))
    const reply = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] }),
    })
    expect(`brigade admin create made a key, and its first call is answered (${reply.status})`, reply.status === 200)
    await reply.arrayBuffer()
  } finally {
    child.kill('SIGTERM')
  }
  const code = await exited
  expect(`SIGTERM ended it with ${code}`, code === 0)
  expect('nothing was written beside the data folder', filesOf(stage.cwd).text === before.text)
}

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-image-'))
  let postgres = null
  try {
    const stage = buildStages(folder)
    expect('no package for development is in the image', developmentPackages(stage.cwd).length === 0)
    say(`the folder of the program has ${Math.round(filesOf(stage.cwd).bytes / 1e6)} MB`)
    postgres = await startPostgres()
    const settings = { DATABASE_URL: postgres.url, MASTER_KEY: randomBytes(32).toString('base64'), DATA_DIR: join(folder, 'data'), LOCAL_SERVERS: 'off' }
    await use(stage, { ...baseEnv, ...stage.env, ...settings, HOST: '127.0.0.1', PORT: '0' })
    say(`the image's steps and its start hold on Node ${process.versions.node}`)
  } finally {
    await postgres?.stop()
    if (process.argv.includes('--keep')) say(`kept: ${folder}`)
    else rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

main().catch(error => {
  process.stderr.write(`rehearse-image: ${error.message}\n`)
  process.exitCode = 1
})
