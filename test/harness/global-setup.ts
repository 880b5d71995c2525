/**
 * Runs once per test run. It compiles the worker threads and migrates one database, which every `testDatabase()` copies. By default this is an embedded
 * database. With TEST_DATABASE=postgres it is a template database on the server of TEST_POSTGRES_URL.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { systemClock } from '../../src/platform/clock.ts'
import { openEmbedded } from '../../src/platform/db/embedded/db-embedded.ts'
import { migrate, migrationsFolder } from '../../src/platform/db/migrate.ts'
import { openPostgres } from '../../src/platform/db/postgres/db-postgres.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { Secret } from '../../src/platform/security/secret.ts'
import { databaseUrl, dropDatabase, runOnServer } from './postgres-server.ts'
import { offerSwift } from './shared-swift.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file with the dump of a migrated embedded database. */
    readonly embeddedDump: string
    /** The URL of the server and the name of the migrated template database. Null in runs on the embedded database. */
    readonly postgres: { readonly url: string; readonly template: string } | null
    /** The URL at which `sharedSwift()` requests the address of the Swift of this run. */
    readonly swiftOffer: string
  }
}

const root = fileURLToPath(new URL('../../', import.meta.url))

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  buildWorkers()
  const folder = mkdtempSync(join(tmpdir(), 'brigade-test-'))
  const dump = join(folder, 'migrated.tar')
  const embedded = await openEmbedded('memory', { clock: systemClock, log: silentLog })
  await migrate(embedded, migrationsFolder, silentLog)
  writeFileSync(dump, await embedded.dump())
  await embedded.close()
  project.provide('embeddedDump', dump)
  const server = process.env['TEST_DATABASE'] === 'postgres' ? serverUrl() : null
  const template = server === null ? null : await makeTemplate(server)
  project.provide('postgres', server === null || template === null ? null : { url: server, template })
  const swift = await offerSwift()
  project.provide('swiftOffer', swift.url)
  return async () => {
    await swift.stop()
    rmSync(folder, { recursive: true, force: true })
    if (server !== null && template !== null) await dropDatabase(server, template)
  }
}

function serverUrl(): string {
  const url = process.env['TEST_POSTGRES_URL']
  if (url === undefined || url === '') throw new Error('TEST_DATABASE=postgres needs TEST_POSTGRES_URL; "node scripts/postgres.mjs start" prints one')
  return url
}

async function makeTemplate(server: string): Promise<string> {
  const template = `brigade_template_${process.pid}`
  await dropDatabase(server, template)
  await runOnServer(server, `create database ${template}`)
  const db = await openPostgres(new Secret(databaseUrl(server, template)), { poolMax: 2, clock: systemClock, log: silentLog })
  await migrate(db, migrationsFolder, silentLog)
  await db.close()
  return template
}

/** Compiles the files of worker threads when the build is missing or older. Tests run the source, but worker threads cannot. */
function buildWorkers(): void {
  const counting = readdirSync(join(root, 'src/platform/media/sound'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => `media/sound/${name.replace('.ts', '')}`)
  const sources = ['db/embedded/db-embedded-worker', 'media/audio-length-worker', ...counting].filter(name => {
    const built = join(root, `dist/platform/${name}.js`)
    return !existsSync(built) || statSync(built).mtimeMs < statSync(join(root, `src/platform/${name}.ts`)).mtimeMs
  })
  if (sources.length === 0) return
  const flags = [
    '--ignoreConfig',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--types',
    'node',
    '--skipLibCheck',
    '--rewriteRelativeImportExtensions',
    '--rootDir',
    join(root, 'src/platform'),
    '--outDir',
    join(root, 'dist/platform'),
  ]
  const files = sources.map(name => join(root, `src/platform/${name}.ts`))
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...flags, ...files], { cwd: root, stdio: 'inherit' })
}
