/** The lines of the README that need no client, as a stranger types them: a clean home, this checkout, the gateway of a first start. */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startProcess } from '../harness/process.ts'
import { blockWith, checkout } from './readme-lines.ts'

let gateway: GatewayProcess
beforeAll(async () => {
  gateway = await startProcess({ SANDBOX: 'on' })
}, 60_000)
afterAll(async () => {
  await gateway.kill()
  rmSync(gateway.dataDir, { recursive: true, force: true })
})

test('the lines of the README write memory over MCP with Node alone', () => {
  const key = /API key +(br-\S+)/.exec(gateway.output())?.[1] ?? ''
  const lines = blockWith('| npx brigade mcp')
  // With npm start and the export of the key, these are all commands from a fresh clone to a memory that is written.
  expect(lines.length).toBeLessThanOrEqual(2)
  const env = { PATH: process.env['PATH'] ?? '', HOME: gateway.dataDir, BRIGADE: gateway.baseUrl, BRIGADE_KEY: key }
  const { status, stdout, stderr } = spawnSync('sh', ['-e', '-c', lines.join('\n')], { cwd: checkout, env, encoding: 'utf8' })
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  const [answer = '', ...content] = stdout.split('\n')
  expect(JSON.parse(answer)).toMatchObject({ id: 1, result: { structuredContent: { key: 'agents/me/pipe.md' } } })
  expect(content.join('\n')).toContain('MCP works.')
}, 60_000)
