/** The chart of deploy/helm: its values fit their schema and the gateway, and where helm is installed it renders what docs/operate/deploy.md promises. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { root } from '../../scripts/paths.mjs'
import { endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { settings } from '../../src/platform/config.ts'

const chart = join(root, 'deploy/helm/brigade')
const textOf = (name: string): string => readFileSync(join(chart, name), 'utf8')
const values = parse(textOf('values.yaml'))
const schema = JSON.parse(textOf('values.schema.json'))

test('the schema of the chart knows every value and no other', () => {
  const optional = ['global', 'nameOverride', 'fullnameOverride']
  expect(
    Object.keys(schema.properties)
      .filter(name => !optional.includes(name))
      .sort(),
  ).toEqual(Object.keys(values).sort())
  for (const [name, part] of Object.entries<{ properties?: object; additionalProperties?: boolean }>(schema.properties))
    if (part.additionalProperties === false) expect(Object.keys(part.properties ?? {}).sort(), name).toEqual(Object.keys(values[name]).sort())
})

test('the chart sets only existing settings, probes existing endpoints, and waits longer than a process drains', () => {
  const fixed: string[] = schema.properties.settings.propertyNames.not.enum
  expect(fixed.filter(name => !(name in settings))).toEqual([])
  const deployment = textOf('templates/deployment.yaml')
  const paths = [...deployment.matchAll(/path: (\/\w+), port/g)].map(([, path]) => `GET ${path}`)
  expect(paths).toEqual(['GET /livez', 'GET /livez', 'GET /readyz'])
  const rows = new Set(Object.values(endpointTable).map(row => row.at))
  expect([...paths, 'GET /metrics'].filter(path => !rows.has(path as never))).toEqual([])
  expect(values.terminationGracePeriodSeconds * 1000).toBeGreaterThan(Number(settings.DRAIN_MS.default) + 5000)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  expect(parse(textOf('Chart.yaml')).appVersion).toBe(version)
})

const hasHelm = spawnSync('helm', ['version', '--short'], { timeout: 20_000 }).status === 0
describe.runIf(hasHelm)(hasHelm ? 'with helm' : 'on helm (not installed)', () => {
  const needed = [
    '--set',
    'image.repository=registry.example.com/brigade',
    '--set',
    'baseUrl=https://gateway.example.com',
    '--set',
    'existingSecret=gateway-secrets',
  ]
  const helm = (...args: string[]) => spawnSync('helm', args, { encoding: 'utf8', timeout: 60_000 })
  // biome-ignore lint/suspicious/noExplicitAny: manifests of several kinds.
  const rendered = (...more: string[]): Map<string, any> => {
    const { status, stdout, stderr } = helm('template', 'try', chart, ...needed, ...more)
    expect(status, stderr).toBe(0)
    const documents = parseAllDocuments(stdout).map(document => {
      expect(document.errors).toEqual([])
      return document.toJS()
    })
    return new Map(documents.filter(document => document !== null).map(document => [document.kind, document]))
  }
  const everything = ['autoscaling.enabled', 'ingress.enabled', 'serviceMonitor.enabled', 'networkPolicy.enabled'].flatMap(name => ['--set', `${name}=true`])

  test('helm accepts the chart, and renders a deployment that drains, has probes and cannot write or gain rights', () => {
    expect(helm('lint', '--strict', chart, ...needed).stdout).toContain('0 chart(s) failed')
    const made = rendered('--set', 'settings.TRUSTED_PROXIES=10.0.0.0/8')
    expect([...made.keys()].sort()).toEqual(['Deployment', 'PodDisruptionBudget', 'Service', 'ServiceAccount'])
    const { replicas, selector, template } = made.get('Deployment').spec
    expect(replicas).toBe(3)
    expect(template.metadata.labels).toMatchObject(selector.matchLabels)
    expect(made.get('Service').spec.selector).toEqual(selector.matchLabels)
    const [container] = template.spec.containers
    expect(container).toMatchObject({
      image: 'registry.example.com/brigade:0.1.0',
      env: [
        { name: 'BASE_URL', value: 'https://gateway.example.com' },
        { name: 'TRUSTED_PROXIES', value: '10.0.0.0/8' },
      ],
      envFrom: [{ secretRef: { name: 'gateway-secrets' } }],
      securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
      startupProbe: { httpGet: { path: '/livez', port: 'http' } },
      readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
      lifecycle: { preStop: { exec: { command: ['sleep', '5'] } } },
    })
    expect(template.spec).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true, runAsUser: 1000 } })
  })

  test('every option of the chart renders its object', () => {
    const made = rendered(
      ...everything,
      '--set',
      'ingress.host=gateway.example.com',
      '--set',
      'ingress.tlsSecret=tls',
      '--set-json',
      'networkPolicy.egress=[{"to":[]}]',
    )
    expect([...made.keys()].sort()).toEqual(
      ['Deployment', 'HorizontalPodAutoscaler', 'Ingress', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'ServiceAccount', 'ServiceMonitor'].sort(),
    )
    // The autoscaler sets the number of pods, so the deployment must not.
    expect(made.get('Deployment').spec.replicas).toBeUndefined()
    const selector = made.get('Deployment').spec.selector.matchLabels
    for (const kind of ['PodDisruptionBudget', 'ServiceMonitor']) expect(made.get(kind).spec.selector.matchLabels, kind).toEqual(selector)
    expect(made.get('NetworkPolicy').spec).toMatchObject({ podSelector: { matchLabels: selector }, policyTypes: ['Ingress', 'Egress'] })
    expect(made.get('ServiceMonitor').spec.endpoints).toMatchObject([
      { port: 'http', authorization: { credentials: { name: 'gateway-secrets', key: 'METRICS_TOKEN' } } },
    ])
    expect(made.get('HorizontalPodAutoscaler').spec.scaleTargetRef.name).toBe(made.get('Deployment').metadata.name)
  })

  test.each([
    ['no image', ['--set', 'image.repository=']],
    ['a base URL with a path', ['--set', 'baseUrl=https://gateway.example.com/v1']],
    ['an unknown value', ['--set', 'replica=2']],
    ['a secret among the settings', ['--set', 'settings.MASTER_KEY=x']],
    ['an ingress without a host', ['--set', 'ingress.enabled=true']],
  ])('the schema refuses %s', (_what, more) => {
    expect(helm('template', 'try', chart, ...needed, ...more).status).not.toBe(0)
  })
})

test('every template of the chart is named in the notes of the guide', () => {
  const kinds = readdirSync(join(chart, 'templates')).flatMap(name => [...textOf(join('templates', name)).matchAll(/^kind: (\w+)/gm)].map(([, kind]) => kind))
  const guide = readFileSync(join(root, 'docs/operate/deploy.md'), 'utf8')
  const section = guide.slice(guide.indexOf('### Helm'), guide.indexOf('## systemd'))
  expect(kinds.filter(kind => !section.includes(`\`${kind}\``))).toEqual([])
})
