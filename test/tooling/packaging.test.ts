/** Checks that the container files fit the project. CI has no container engine, so the tests read the files. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { buildContext, dockerfile, pairsOf } from '../../scripts/dockerfile.mjs'
import { root } from '../../scripts/paths.mjs'
import { endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { settings } from '../../src/platform/config.ts'

interface Service {
  readonly environment?: Readonly<Record<string, string>>
  readonly secrets?: readonly string[]
  readonly volumes?: readonly string[]
  readonly networks?: readonly string[]
  readonly depends_on?: Readonly<Record<string, unknown>> | readonly string[]
  readonly stop_grace_period?: string
}
interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly networks: object
  readonly volumes: object
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

const textOf = (name: string): string => readFileSync(join(root, name), 'utf8')
const compose = parse(textOf('compose.yaml')) as Compose
const instructions = dockerfile()
const runtime = instructions.slice(instructions.findLastIndex(({ word }) => word === 'FROM'))
const partsOf = (word: string): string[] => runtime.filter(instruction => instruction.word === word).map(({ rest }) => rest)

/** Variables that are settings of Node, not of the gateway. */
const ofNode = ['NODE_ENV']

function unknownSettings(names: readonly string[]): string[] {
  const isSetting = (name: string): boolean => {
    const secret = name.replace(/_FILE$/, '')
    return name in settings || (secret in settings && settings[secret as keyof typeof settings].kind === 'secret') || ofNode.includes(name)
  }
  return names.filter(name => !isSetting(name))
}

test('the image and the compose file set only existing settings, and secrets come from files', () => {
  const image = pairsOf(partsOf('ENV').join(' '))
  const gateway = compose.services['gateway']?.environment ?? {}
  expect(unknownSettings(Object.keys(image))).toEqual([])
  expect(unknownSettings(Object.keys(gateway))).toEqual([])
  expect(unknownSettings(['DATA_DIRECTORY', 'HOST_FILE', 'MASTER_KEY_FILE'])).toEqual(['DATA_DIRECTORY', 'HOST_FILE'])
  expect(image).toMatchObject({ HOST: '0.0.0.0', PORT: '8787', DATA_DIR: '/data', SETTLE: 'postgres' })
  const secrets = Object.entries(settings).filter(([, { kind }]) => kind === 'secret')
  expect(secrets.map(([name]) => name).filter(name => name in image || name in gateway)).toEqual([])
})

test('every path that the image copies exists or is built, and is part of the build context', () => {
  const isSeen = buildContext()
  const built = new Set(['/app/dist'])
  for (const { flags, rest } of instructions.filter(({ word }) => word === 'COPY')) {
    for (const name of rest.split(/\s+/).slice(0, -1)) {
      if (flags['from'] === undefined) expect({ name, there: existsSync(join(root, name)), seen: isSeen(name) }).toEqual({ name, there: true, seen: true })
      else expect(built).toContain(name)
    }
  }
  // The folders that src/ reads at run time.
  const copied = runtime.filter(({ word }) => word === 'COPY').flatMap(({ rest }) => rest.split(/\s+/).slice(0, -1))
  expect(copied).toEqual(expect.arrayContaining(['catalog', 'migrations', 'package.json', '/app/dist']))
})

test('the build context contains no secrets, data or packages of this machine', () => {
  const isSeen = buildContext()
  const kept = ['.env', '.env.local', 'gateway.env', 'secrets/master-key', '.brigade/master.key', 'node_modules/pg/package.json', 'dist/main.js', '.git/config']
  const inside = [
    'src/.env',
    'src/.brigade/db/x',
    'catalog/node_modules/x',
    'scripts/secrets/x',
    'src/local.env',
    'bench/results/latest.json',
    'test/harness/app.ts',
  ]
  expect([...kept, ...inside].filter(isSeen)).toEqual([])
  expect(
    ['src/main.ts', 'src/platform/security/secrets.ts', 'catalog/models.json', 'migrations/0001_core.sql', 'package.json'].filter(path => !isSeen(path)),
  ).toEqual([])
  expect(textOf('.gitignore').split('\n')).toEqual(expect.arrayContaining(['.env', 'secrets/', 'gateway.env']))
})

test('the image runs the program directly, without development packages, as an unprivileged user, and its health check calls an existing endpoint', () => {
  expect(partsOf('RUN').filter(run => run.startsWith('npm ci'))).toEqual([expect.stringContaining('--omit=dev --workspaces=false')])
  expect(partsOf('USER')).toEqual([expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/)])
  expect(partsOf('EXPOSE')).toEqual([settings.PORT.default])
  const command: string[] = JSON.parse(partsOf('CMD')[0] ?? '')
  expect([command[0], command.at(-1)]).toEqual(['node', 'dist/main.js'])
  const path = /\$\{process\.env\.PORT\}(\/[a-z]+)/.exec(partsOf('HEALTHCHECK')[0] ?? '')?.[1]
  expect(Object.values(endpointTable).map(row => row.at)).toContain(`GET ${path}`)
})

test('the parts of the compose file are consistent', () => {
  const { services, networks, volumes, secrets } = compose
  for (const service of Object.values(services)) {
    for (const name of service.secrets ?? []) expect(Object.keys(secrets)).toContain(name)
    for (const name of service.networks ?? []) expect(Object.keys(networks)).toContain(name)
    for (const mount of service.volumes ?? []) expect(Object.keys(volumes)).toContain(mount.split(':')[0])
    const needs = service.depends_on ?? []
    for (const name of Array.isArray(needs) ? needs : Object.keys(needs)) expect(Object.keys(services)).toContain(name)
    for (const [name, value] of Object.entries(service.environment ?? {}))
      if (name.endsWith('_FILE')) expect(service.secrets).toContain(value.replace('/run/secrets/', ''))
  }
  // A command of the guide makes each file that the compose file needs.
  const guide = textOf('docs/operate/deploy.md')
  for (const { file } of Object.values(secrets)) expect(guide).toContain(file.replace('./', '> '))
  for (const [, name] of textOf('compose.yaml').matchAll(/\$\{(\w+):\?/g)) expect(guide).toContain(`${name}=`)
  expect(Number.parseInt(services['gateway']?.stop_grace_period ?? '', 10) * 1000).toBeGreaterThan(Number(settings.DRAIN_MS.default))
})
