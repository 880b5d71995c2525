/** Runs every line of docs/start/with-curl.md, in order and in one shell, on the gateway of a first start. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GatewayProcess, startProcess } from '../harness/process.ts'
import { startProgram } from '../harness/started-program.ts'
import { blocksOf } from './page-lines.ts'
import { brigade } from './stdio-clients.ts'

const hasTools = process.platform !== 'win32' && ['sh', 'curl', 'awk', 'npx'].every(name => spawnSync(name, ['--version']).error === undefined)

describe.runIf(hasTools)('the tour with curl', () => {
  let gateway: GatewayProcess
  let folder: string
  beforeAll(async () => {
    gateway = await startProcess({ SANDBOX: 'on' })
    // A temporary folder in which `npx brigade` works as it does in a clone.
    folder = mkdtempSync(join(gateway.dataDir, 'clone-'))
    mkdirSync(join(folder, '.brigade'))
    mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true })
    writeFileSync(join(folder, 'node_modules', '.bin', 'brigade'), `#!/bin/sh\nexec '${process.execPath}' '${brigade}' "$@"\n`, { mode: 0o755 })
  }, 100_000)
  afterAll(async () => {
    await gateway.kill()
    rmSync(gateway.dataDir, { recursive: true, force: true })
  })

  test('every line works as it is written on the page, and only the call of the revoked agent is refused', async () => {
    const key = /API key +(br-\S+)/.exec(gateway.output())?.[1] ?? ''
    const blocks = blocksOf('with-curl.md')
    const script = blocks
      .map(block => `${block}echo; echo '=== next ==='\n`)
      .join('')
      .replace('http://127.0.0.1:8787', gateway.baseUrl)
      .replace('br-…', key)
      // This is the one address that a reader fills in. An IP address needs no name server.
      .replace('hooks.example.com', '1.1.1.1')
    const { ended, out, err } = startProgram('sh', ['-e', '-c', script], {
      cwd: folder,
      env: { HOME: folder, DATA_DIR: gateway.dataDir, LOG_LEVEL: 'error', npm_config_update_notifier: 'false' },
    })
    const code = await ended
    expect([code, code === 0 ? '' : err()]).toEqual([0, ''])
    const printed = out().split('=== next ===\n')
    const outputOf = (line: string): string => printed[blocks.findIndex(block => block.includes(line))] ?? ''

    expect(printed).toHaveLength(blocks.length + 1)
    expect(printed.filter(text => /"error":\s*\{/.test(text))).toEqual([outputOf('/revoke')])
    expect(outputOf('/revoke')).toMatch(/HTTP\/1\.1 401 [\s\S]*"reason":"agent_revoked"/)
    expect(outputOf('"stream":true')).toMatch(/^x-br-provider: sandbox[\s\S]*data: \[DONE\]/im)
    expect(outputOf('say messages ')).toContain('"type":"message"')
    expect(outputOf('say messages ')).toContain('simulated transcript')
    expect(outputOf('--data-binary')).toContain('The build is green.')
    expect(outputOf('memory/search')).toContain('agents/reviewer/notes.md')
    expect(outputOf('monthly_budget_inr":50')).toContain('"cap_inr":50')
    expect(outputOf('/children')).toContain('reviewer-tests')
    expect(outputOf('me GET\n')).toContain('"role":"owner"')
    expect(outputOf('me POST /keys')).toContain('"key":"br-')
    expect(outputOf('PUT /byok/sandbox')).toContain('"eligible":true')
    expect(outputOf("'/audit?limit=5'")).toContain('asha@example.com')
    expect(outputOf('credit grant')).toContain('welcome')
    expect(outputOf('POST /webhooks')).toContain('whsec_')
    expect(outputOf('usage --by agent')).toContain('reviewer')
  }, 120_000)
})
