/**
 * What a newcomer does on an empty machine, with the real npm and its registry: installs the packed file, and runs `npm start` in a fresh clone. Each has an
 * empty home folder. The times that the project promises are measured by scripts/first-minute.mjs on a quiet machine.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { keptDependencies } from '../../scripts/bundle.mjs'
import { ensure } from '../../scripts/ensure.mjs'
import { ask, copyClone, newcomer, npm, packed, reachesRegistry, started } from '../../scripts/first-minute.mjs'
import { root } from '../../scripts/paths.mjs'
import { parsed, ask as scrape } from '../harness/prometheus.ts'
import { hasPseudoTerminal, inTerminal } from '../harness/pseudo-terminal.ts'
import { webmOf } from '../harness/recordings.ts'
import { until } from '../harness/until.ts'

const run = promisify(execFile)
/** The processor time of a first start, in seconds. Beside other tests the clock says little. */
const startCpuMaxSeconds = 15
const folder = mkdtempSync(join(tmpdir(), 'brigade-minute-'))
afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }), 300_000)

/** Opens a sign-in link and presses the button of its page. Returns the status of the reply. */
async function pressButton(link: string): Promise<number> {
  const { origin, searchParams } = new URL(link)
  const headers = { accept: 'text/html', origin, 'content-type': 'application/x-www-form-urlencoded' }
  const reply = await fetch(`${origin}/auth/link`, { method: 'POST', redirect: 'manual', headers, body: `token=${searchParams.get('token')}` })
  return reply.status
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>
}
const readJson = (...path: string[]) => JSON.parse(readFileSync(join(...path), 'utf8'))
/** The packages of the lock file that only tests and checks need, or that only the build needs. */
const toolPaths = Object.entries((readJson(root, 'package-lock.json') as Lock).packages).flatMap(([path, { dev }]) => (dev === true ? [path] : []))
const buildNames: string[] = Object.keys(readJson(root, 'scripts/build-packages/package.json').dependencies)

/** A program that loads the parts of an installed package that a short start does not load. */
const partsOfPackage = `
  import { readFileSync } from 'node:fs'
  import { createRequire } from 'node:module'
  import { dirname, join } from 'node:path'
  import { Worker } from 'node:worker_threads'
  import { agentFetch } from 'brigade-gateway/agents'
  const { PROGRAM, SOUND } = process.env
  const load = createRequire(PROGRAM)
  const { S3Client } = load('#aws/client-s3')
  const { url } = new S3Client({ region: 'ap-south-1' }).config.endpointProvider({ Region: 'ap-south-1', Bucket: 'notes-of-agents' })
  const names = { 'signature-v4': 'SignatureV4', sts: 'AssumeRoleCommand', 'node-http-handler': 'NodeHttpHandler', 'credential-provider-node': 'defaultProvider' }
  const imports = Object.entries(names).map(([file, name]) => typeof load('#aws/' + file)[name] === 'function')
  const worker = new Worker(join(dirname(PROGRAM), 'platform', 'media', 'audio-length-worker.js'), { execArgv: [] })
  worker.postMessage({ id: 1, bytes: readFileSync(SOUND), mimeType: '', filename: '' })
  const sound = await new Promise(done => worker.once('message', ({ length }) => done(length)))
  await worker.terminate()
  const image = await load('sharp')({ create: { width: 9, height: 9, channels: 3, background: 'red' } }).png().toBuffer({ resolveWithObject: true })
  console.log(JSON.stringify({ toolkit: typeof agentFetch, bucket: url.host, imports, sound, image: image.info.format }))
`

const there = await reachesRegistry()
const title = there ? 'with the registry of npm' : 'on registry-of-npm (not installed)'

describe.runIf(there)(`the packed file, ${title}`, () => {
  const project = join(folder, 'project')
  const home = join(folder, 'home')
  const data = join(home, '.brigade')
  const installed = join(project, 'node_modules', 'brigade-gateway')
  let env: Record<string, string> = {}
  let first = ''
  let key = ''
  beforeAll(async () => {
    await ensure({ types: true })
    env = await newcomer(home)
    first = await packed(folder)
    mkdirSync(project)
    await npm(['install', first], project, env)
  }, 600_000)

  test('FIRST-10 a packed file runs in an empty folder without a build, starts below 15 s, and keeps its data in ~/.brigade', {
    timeout: 120_000,
  }, async () => {
    const gateway = await started('npx', ['brigade-gateway'], project, env)
    try {
      const { text } = await scrape(`${gateway.url}/metrics`)
      expect(parsed(text).get('process_cpu_seconds_total')).toBeLessThan(startCpuMaxSeconds)
      key = gateway.key ?? ''
      await ask(gateway, key)
      // The console is in the file, and answers a browser.
      const page = await fetch(`${gateway.url}/console/`, { headers: { accept: 'text/html' } })
      expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')])
    } finally {
      await gateway.stop()
    }
    expect(readdirSync(data)).toEqual(expect.arrayContaining(['db', 'journal', 'master.key']))
    expect(statSync(data).mode & 0o777).toBe(0o700)
    expect(readdirSync(project).sort()).toEqual(['node_modules', 'package-lock.json', 'package.json'])
    const isThere = (path: string): boolean => existsSync(join(project, path))
    // The packages of the project itself: some of theirs have a name that a package of the gateway has too.
    const { dependencies, devDependencies } = readJson(root, 'package.json')
    const bundled = Object.keys(dependencies).filter(name => !keptDependencies.includes(name))
    expect([...Object.keys(devDependencies), ...bundled, ...buildNames].filter(name => isThere(`node_modules/${name}`))).toEqual([])
    for (const name of keptDependencies) expect(isThere(`node_modules/${name}`), name).toBe(true)
    for (const command of ['brigade', 'brigade-gateway']) expect(isThere(`node_modules/.bin/${command}`), command).toBe(true)
  })

  test('the packed file has what the gateway reads, and no test, source, map or picture', () => {
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' }).map(path => path.replaceAll('\\', '/'))
    for (const needed of [
      'dist/main.js',
      'dist/console/index.html',
      'catalog/models.json',
      'migrations/0001_orgs.sql',
      'dist/agents/toolkit/toolkit.d.ts',
      'LICENSE',
    ])
      expect(files).toContain(needed)
    expect(
      files.filter(path => /^(src|test|scripts|bench)\/|\.map$|^docs\/(images|internals)|\.ts$/.test(path) && !path.startsWith('dist/agents/toolkit/')),
    ).toEqual([])
    expect(statSync(first).size).toBeLessThan(10_000_000)
  })

  test('the packed file has the licences of the packages whose code is in it', () => {
    const text = readFileSync(join(installed, 'THIRD-PARTY-LICENSES'), 'utf8')
    for (const title of [/^express \d\S+ \(MIT\)/m, /^zod \d/m, /^@aws-sdk\/client-s3 \d\S+ \(Apache-2\.0\)/m, /^react \d\S+ \(MIT\)/m, /^pg \d/m])
      expect(text).toMatch(title)
    expect(text).toContain('Permission is hereby granted, free of charge')
    expect(text).not.toMatch(/^(vitest|typescript|vite) \d/m)
  })

  test('threads, lazy parts, the AWS SDK, the toolkit and the commands work from the bundled files', { timeout: 120_000 }, async () => {
    const gateway = await started('npx', ['brigade-gateway'], project, env)
    const brigade = (...words: string[]) =>
      run(process.execPath, [join(installed, 'dist', 'cli', 'brigade.js'), ...words], { cwd: project, env: { ...env, BRIGADE: gateway.url, BRIGADE_KEY: key } })
    try {
      expect((await brigade('whoami')).stdout).toContain('organisation  Home')
      expect((await brigade('chat', 'Hello')).stdout).toContain('simulated reply')
      expect((await brigade('doctor')).stdout).toMatch(/^\d+ ok/m)
      // The thread of the journal writes the call into the database.
      await until(async () => /sandbox-chat/.test((await brigade('usage')).stdout), 'the calls are in the report')
    } finally {
      await gateway.stop()
    }
    writeFileSync(join(folder, 'sound.webm'), webmOf(7))
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', partsOfPackage], {
      cwd: project,
      env: { ...env, PROGRAM: join(installed, 'dist', 'main.js'), SOUND: join(folder, 'sound.webm') },
    })
    expect(JSON.parse(stdout)).toEqual({
      toolkit: 'function',
      bucket: 'notes-of-agents.s3.ap-south-1.amazonaws.com',
      imports: [true, true, true, true],
      sound: expect.objectContaining({ seconds: 7 }),
      image: 'png',
    })
  })

  test('both commands find the settings and the data in ~/.brigade, and the environment has priority', { timeout: 240_000 }, async () => {
    writeFileSync(join(data, '.env'), 'BASE_URL=http://gateway.test\nLOG_LEVEL=error\n')
    const gateway = await started('npx', ['brigade-gateway'], project, { ...env, BASE_URL: 'http://127.0.0.1:8999' })
    try {
      expect(gateway.url).toBe('http://127.0.0.1:8999')
      for (const words of [['brigade'], ['brigade-gateway']]) {
        const { stdout } = await run('npx', [...words, 'admin', 'sign-in', '--email', 'owner@localhost'], { cwd: project, env })
        expect(stdout).toContain('http://127.0.0.1:8999/auth/link')
      }
    } finally {
      await gateway.stop()
    }
    const again = await started('npx', ['brigade-gateway'], project, env)
    await again.stop()
    expect(again.url).toBe('http://gateway.test')
    rmSync(join(data, '.env'))
  })

  test('FIRST-10 the next version is installed over it: it migrates the same data, and the key of the first start still answers', {
    timeout: 300_000,
  }, async () => {
    const second = await packed(folder, (copy: string) => {
      const manifest = readJson(copy, 'package.json')
      writeFileSync(join(copy, 'package.json'), JSON.stringify({ ...manifest, version: '99.0.0' }))
      writeFileSync(
        join(copy, 'migrations', '9999_next.sql'),
        '-- Additive: a table of the next version.\ncreate table next_version (id bigint primary key);\n',
      )
    })
    await npm(['install', second], project, env)
    const gateway = await started('npx', ['brigade-gateway'], project, env)
    try {
      await ask(gateway, key)
      expect(gateway.said()).toContain('9999_next.sql')
      expect(gateway.said()).toContain('Brigade 99.0.0')
    } finally {
      await gateway.stop()
    }
  })
})

describe.runIf(there)(`a fresh clone, ${title}`, () => {
  const clone = join(folder, 'clone')
  let env: Record<string, string> = {}
  beforeAll(async () => {
    env = await newcomer(join(folder, 'home-of-clone'))
    await copyClone(clone)
  })
  const missing = (paths: readonly string[]): string[] => paths.filter(path => !existsSync(join(clone, path)))

  /** Checks what the first start installed. */
  const expectInstalled = (): void => {
    expect(toolPaths.length).toBeGreaterThan(100)
    // npm also records a package that it left out for this platform, so the folders count.
    expect(missing(toolPaths)).toEqual(toolPaths)
    expect(missing(buildNames.map(name => `node_modules/${name}`))).toEqual([])
  }

  test.runIf(hasPseudoTerminal)(
    'FIRST-01 a first start on a terminal shows at most 12 lines, and progress with the elapsed time while it installs, builds and migrates; a pipe gets JSON lines',
    { timeout: 600_000 },
    async () => {
      const terminal = inTerminal(['npm', 'start'], { cwd: clone, env })
      await terminal.shows('Ctrl-C', 500_000)
      const raw = terminal.raw()
      for (const work of [/… Installing the packages \(npm ci\) {2}\d+ s/, /… Building {2}\d+ s/, /… Loading Brigade/]) expect(raw).toMatch(work)
      const lines = terminal.lines()
      const from = lines.findIndex(line => /^ {2}Brigade \d/.test(line))
      expect(lines.slice(0, from).filter(line => line.includes('✓'))).toEqual([
        expect.stringMatching(/✓ Installed \d+ packages \(.*\d s\)$/),
        expect.stringMatching(/✓ Built \(.*\d s\)$/),
        expect.stringMatching(/✓ Database ready \(\d+ migrations, .*\d m?s\)$/),
      ])
      const banner = lines.slice(from, lines.findIndex(line => line.includes('Ctrl-C')) + 1)
      expect(banner.length).toBeLessThanOrEqual(12)
      const shown = (pattern: RegExp): string => pattern.exec(banner.join('\n'))?.[1] ?? ''
      const [url, link, key] = [shown(/Brigade \S+ +(http:\/\/\S+)/), shown(/Open the console +(\S+)/), shown(/API key +(br-\S+)/)]
      expect(raw.split(key)).toHaveLength(2)
      expect(banner.join('\n')).toMatch(/Connect a client[\s\S]*Stop +Ctrl-C/)
      expect(raw).not.toContain('{"level"')
      await ask({ url }, key)
      // The link signs the owner in, once.
      expect([await pressButton(link), await pressButton(link)]).toEqual([302, 400])
      await terminal.interrupt()
      expect(existsSync(join(clone, '.brigade', 'db'))).toBe(true)
      expectInstalled()

      // The program that npm start runs. npm itself writes sequences of its own to a terminal.
      const plain = inTerminal([process.execPath, 'scripts/start.mjs'], {
        cwd: clone,
        env: { ...env, NO_COLOR: '1', DATA_DIR: join(clone, '.brigade-without-styles') },
      })
      await plain.shows('Ctrl-C')
      // The line of the progress is erased, and nothing has a style.
      expect(plain.raw().replaceAll('\r\u001b[2K', '')).not.toContain('\u001b')
      await plain.interrupt()

      const piped = await started('npm', ['start'], clone, { ...env, DATA_DIR: join(clone, '.brigade-of-pipe') })
      await piped.stop()
      const json: string[] = piped
        .said()
        .split('\n')
        .filter((line: string) => line.startsWith('{"level"'))
      expect(json.filter(line => JSON.parse(line).msg === 'migration_applied').length).toBeGreaterThan(30)
      expect(piped.said()).not.toContain('\u001b')
    },
  )

  test('npm start in a fresh clone installs only what building and running need, serves, and a later start installs and builds nothing', {
    timeout: 600_000,
  }, async () => {
    const serve = async (): Promise<string> => {
      const gateway = await started('npm', ['start'], clone, { ...env, DATA_DIR: join(clone, '.brigade-of-start') })
      try {
        if (gateway.key !== null) await ask(gateway, gateway.key)
      } finally {
        await gateway.stop()
      }
      return gateway.said()
    }
    // The test before has started it, unless this machine has no pseudo-terminal.
    if (!hasPseudoTerminal) await serve()
    expect(await serve()).not.toMatch(/Installing|Building/)
    expectInstalled()
  })

  test('npm test installs the rest on its first run, without a change of the lock file', { timeout: 600_000 }, async () => {
    const lock = readFileSync(join(clone, 'package-lock.json'), 'utf8')
    const { stdout } = await run('npm', ['test', '--', 'test/platform/money.test.ts'], { cwd: clone, env: { ...env, NO_COLOR: '1' }, maxBuffer: 16 << 20 })
    expect(stdout).toMatch(/Tests\s+\d+ passed/)
    expect(missing(['node_modules/vitest', 'node_modules/@biomejs/biome', 'node_modules/knip'])).toEqual([])
    expect(readFileSync(join(clone, 'package-lock.json'), 'utf8')).toBe(lock)
    const { stderr } = await run(process.execPath, ['scripts/ensure.mjs'], { cwd: clone, env })
    expect(stderr).toBe('')
  })
})

test.skipIf(there)('FIRST-10 installs are shown on registry-of-npm (not installed)', () => undefined)
