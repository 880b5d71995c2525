/** The files of deploy/monitoring/ use only metrics and labels that a gateway has. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { root } from '../../scripts/paths.mjs'
import { startApp, type TestApp } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string }
}
interface Panel {
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

const rulesFile = join(root, 'deploy/monitoring/prometheus-rules.yaml')
const rules: readonly Rule[] = parse(readFileSync(rulesFile, 'utf8')).groups.flatMap((group: { rules: Rule[] }) => group.rules)
const dashboard = JSON.parse(readFileSync(join(root, 'deploy/monitoring/grafana-dashboard.json'), 'utf8')) as { readonly panels: readonly Panel[] }
const page = readFileSync(join(root, 'docs/operate/monitoring.md'), 'utf8')

/** Labels that Prometheus adds to every value. */
const ofPrometheus = ['instance', 'job', 'le']
/** Only PostgreSQL has a pool. */
const ofPool = ['brigade_database_connections', 'brigade_database_waiting']

/** The names of metrics in an expression, and the labels that it selects or groups by. */
function used(expr: string): { names: string[]; labels: string[] } {
  const names = [...expr.matchAll(/\b(?:brigade|nodejs|process)_\w+/g)].map(([name]) => name)
  const selected = [...expr.matchAll(/[{,]\s*(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label)
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(',').map(label => label.trim()))
  return { names, labels: [...selected, ...grouped] }
}

let app: TestApp
/** Name of each metric with its labels, as the text of /metrics declares and shows them. */
const metrics = new Map<string, Set<string>>()
beforeAll(async () => {
  app = await startApp({ env: { SANDBOX: 'on' } })
  await app.call('POST', '/v1/chat/completions', { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] })
  await app.call('POST', '/v1/chat/completions', {})
  await app.call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'models', arguments: {} } })
  const text = await (await fetch(`${app.baseUrl}/metrics`)).text()
  for (const [, name = '', type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm))
    for (const full of type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]) metrics.set(full, new Set())
  for (const [, name = '', labels = ''] of text.matchAll(/^([a-z_]\w*)\{([^}]*)\}/gm))
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) metrics.get(name)?.add(label)
})
afterAll(() => app?.stop())

function faults(expr: string): string[] {
  const { names, labels } = used(expr)
  if (names.length === 0) return [`no metric: ${expr}`]
  const isThere = (name: string): boolean => metrics.has(name) || (!onPostgres && ofPool.includes(name))
  const unknown = names.filter(name => !isThere(name)).map(name => `${name} is no metric`)
  const shown = names.flatMap(name => [...(metrics.get(name) ?? [])])
  // A metric without values yet shows no labels. docs/operate/monitoring.md has them in its table.
  const documented = names.flatMap(name =>
    [...(new RegExp(`\`${name.replace(/_bucket$/, '')}\`[^|]*\\|([^|]*)\\|`).exec(page)?.[1] ?? '').matchAll(/\w+/g)].map(([word]) => word),
  )
  const known = new Set([...shown, ...documented, ...ofPrometheus])
  return [...unknown, ...labels.filter(label => !known.has(label)).map(label => `${label} is no label of ${names.join(', ')}`)]
}

test('every alert uses metrics and labels that the gateway has, and says what is wrong and how bad it is', () => {
  expect(rules.flatMap(rule => faults(rule.expr))).toEqual([])
  expect(new Set(rules.map(rule => rule.alert)).size).toBe(rules.length)
  for (const rule of rules) {
    expect(['critical', 'warning']).toContain(rule.labels.severity)
    expect(rule.for).toMatch(/^\d+m$/)
    expect([rule.annotations.summary, rule.annotations.description].every(text => text.length > 20)).toBe(true)
  }
})

test('every panel of the dashboard uses metrics and labels that the gateway has', () => {
  const panels = dashboard.panels.filter(panel => panel.type !== 'row')
  expect(panels.length).toBeGreaterThan(12)
  expect(panels.flatMap(panel => (panel.targets ?? []).flatMap(target => faults(target.expr)))).toEqual([])
  for (const panel of panels) expect(panel.description, panel.title).toBeTruthy()
  // A name in a legend is a label of its expression.
  for (const { expr, legendFormat } of panels.flatMap(panel => panel.targets ?? []))
    for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) expect(used(expr).labels, expr).toContain(label)
})

test('the page lists every alert with its time', () => {
  const listed = [...page.matchAll(/^\| `(Brigade\w+)` \|.*\| (\d+m) \|$/gm)].map(([, name, time]) => [name, time])
  expect(listed.sort()).toEqual(rules.map(rule => [rule.alert, rule.for]).sort())
})

test('the check of the files finds an unknown metric and an unknown label', () => {
  expect(faults('rate(brigade_nothing_total[5m])')).toEqual(['brigade_nothing_total is no metric'])
  expect(faults('sum by (organisation) (brigade_ready)')).toEqual(['organisation is no label of brigade_ready'])
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
describe.runIf(hasPromtool)(hasPromtool ? 'with promtool' : 'on promtool (not installed)', () => {
  test('promtool accepts the rules', () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', rulesFile], { encoding: 'utf8' })
    expect(status, stdout + stderr).toBe(0)
  })
})
