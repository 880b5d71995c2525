/**
 * The conformance suite of the MCP project against the production transport, with the tools, resources and prompts that the suite asks
 * for. The baseline of a set names what is not passed and why; the suite fails when one of them passes.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Mount, startMount } from '../mcp/mount.ts'
import { fixtureSurfaces } from './fixture-surface.ts'
import { programs, run } from './programs.ts'

let mount: Mount
beforeAll(async () => {
  // The suite sends no header of ours; the mount puts a credential on its requests, and all checks stay.
  mount = await startMount(fixtureSurfaces(), { bearer: 'br-full' })
})
afterAll(() => mount.close())

const baselineOf = (set: string): string => fileURLToPath(new URL(`baseline-${set}.yml`, import.meta.url))

describe.each([
  ['2025-11-25', 30],
  ['2026-07-28', 37],
])('the frozen set %s', (set, required) => {
  const lines = readFileSync(baselineOf(set), 'utf8')
    .split('\n')
    .filter(line => line !== '')
  const exceptions = lines.filter(line => line.startsWith('  - ')).map(line => line.slice(4))

  test('MCPX-01 the conformance suite passes its frozen set, but for what the baseline names', async () => {
    const { code, stdout, stderr } = await run(programs.conformance, [
      'server',
      '--url',
      mount.url,
      '--requirements',
      set,
      '--expected-failures',
      baselineOf(set),
    ])
    const summary = stdout.slice(stdout.indexOf('=== SUMMARY ==='))
    expect(code, summary + stderr).toBe(0)
    const passed = [...summary.matchAll(/^✓ ([\w-]+): \d+ passed, 0 failed/gm)].map(([, scenario]) => scenario)
    const excused = new Set(exceptions.map(entry => entry.split(':')[0]))
    expect(passed.length, summary).toBeGreaterThanOrEqual(required - excused.size)
  })

  test('every entry of the baseline is below its reason', () => {
    const entries = lines.slice(lines.indexOf('server:') + 1)
    const groups = entries.filter((line, index) => line.startsWith('  - ') && !entries[index - 1]?.startsWith('  - '))
    for (const first of groups) expect(entries[entries.indexOf(first) - 1], first).toMatch(/^ {2}# .{40,}/)
  })
})
