/**
 * The conformance suite of the MCP project, with the tools, resources and prompts that the suite asks for: against the production transport, and through a
 * whole gateway at the mount of a server that has them. A baseline names what is not passed and why; the suite fails when one of its entries passes.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Mount, startMount } from '../mcp/mount.ts'
import { fixtureSurfaces } from './fixture-surface.ts'
import { type GatewayMount, startGatewayMount } from './gateway-mount.ts'
import { programs, run } from './programs.ts'

let mount: Mount
let behind: GatewayMount
beforeAll(async () => {
  // The suite sends no header of ours; the mount puts a credential on its requests, and all checks stay.
  mount = await startMount(fixtureSurfaces(), { bearer: 'br-full' })
  behind = await startGatewayMount()
})
afterAll(async () => {
  await mount.close()
  await behind.close()
})

const baselineOf = (name: string): string => fileURLToPath(new URL(`baseline-${name}.yml`, import.meta.url))
const linesOf = (name: string): string[] =>
  readFileSync(baselineOf(name), 'utf8')
    .split('\n')
    .filter(line => line !== '')

/** Runs a frozen set against an address, with the exceptions of a baseline. `required` is the number of scenarios of the set. */
async function passes(url: string, set: string, baseline: string, required: number): Promise<void> {
  const args = ['server', '--url', url, '--requirements', set, '--expected-failures', baselineOf(baseline)]
  const { code, stdout, stderr } = await run(programs.conformance, args)
  const summary = stdout.slice(stdout.indexOf('=== SUMMARY ==='))
  expect(code, summary + stderr).toBe(0)
  const passed = [...summary.matchAll(/^✓ ([\w-]+): \d+ passed, 0 failed/gm)].map(([, scenario]) => scenario)
  const exceptions = linesOf(baseline).filter(line => line.startsWith('  - '))
  const excused = new Set(exceptions.map(line => line.slice(4).split(':')[0]))
  expect(passed.length, summary).toBeGreaterThanOrEqual(required - excused.size)
}

describe.each([
  ['2025-11-25', 30],
  ['2026-07-28', 37],
])('the frozen set %s', (set, required) => {
  test('MCPX-01 the conformance suite passes its frozen set, but for what the baseline names', () => passes(mount.url, set, set, required))

  test('TGW-17 the conformance suite passes its frozen set through the gateway, but for what a gateway does not carry', () =>
    passes(behind.url, set, `gateway-${set}`, required))

  test.each([set, `gateway-${set}`])('every entry of the baseline %s is below its reason', baseline => {
    const lines = linesOf(baseline)
    const entries = lines.slice(lines.indexOf('server:') + 1)
    const groups = entries.filter((line, index) => line.startsWith('  - ') && !entries[index - 1]?.startsWith('  - '))
    for (const first of groups) expect(entries[entries.indexOf(first) - 1], first).toMatch(/^ {2}# .{40,}/)
  })
})
