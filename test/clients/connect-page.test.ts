/** The way of docs/start/connect-a-client.md from nothing to a memory that a real client has written. */
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { blockWith, checkout } from '../cli/page-lines.ts'
import { type GatewayProcess, startProcess } from '../harness/process.ts'
import { programOf, run, throwAwayHome } from './programs.ts'

let gateway: GatewayProcess
let home: ReturnType<typeof throwAwayHome>
beforeAll(async () => {
  home = throwAwayHome()
  gateway = await startProcess({ SANDBOX: 'on' })
})
afterAll(async () => {
  await gateway.kill()
  rmSync(gateway.dataDir, { recursive: true, force: true })
  home.remove()
})

test('the lines of the page about clients connect Codex in a clean home, and Codex writes memory, in fewer than five commands after npm start', async () => {
  const key = /API key +(br-\S+)/.exec(gateway.output())?.[1] ?? ''
  const lines = blockWith('npx brigade connect codex --write --trust-tools\ncodex')
  expect(lines.length).toBeLessThan(5)
  const script = lines.join('\n').replace('br-…', key)
  const env = { HOME: home.path, BRIGADE: gateway.baseUrl, PATH: `${dirname(programOf('CODEX_PROGRAM'))}:${process.env['PATH']}` }
  const { code, stdout, stderr } = await run('sh', ['-e', '-c', script], { cwd: checkout, env })
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('mcp_servers.brigade')
  expect(stdout).toContain('Codex was here.')
})
