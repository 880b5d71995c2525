/**
 * The walls of the code base: which folder may import which. ARCHITECTURE.md explains the layers; this file enforces them, for
 * type-only imports too. `peers` is the list of domains in an order without cycles: a domain imports only what stands in its row.
 */
const swc = require('@swc/core')

// The cruiser parses TSX as TypeScript, which fails at the first element. Its parser is told the syntax here.
const { parseFileSync } = swc
swc.parseFileSync = (name, options) => parseFileSync(name, { ...options, tsx: name.endsWith('.tsx') })

const platform = '^src/platform/'
/** The web console: programs for a browser, which a build of its own makes. */
const webConsole = '^src/console/'
/** Packages that the build puts into the console. They are development packages, because a gateway needs none of them to run. */
const browserPackages = '(^|node_modules/)(react|react-dom|@tanstack/[^/]+|@codemirror/[^/]+|@lezer/[^/]+|diff)(/|$)'

/** Domain folder (below src/) -> the domain folders that it may import. Platform, wire and providers are open to all of them. */
const peers = {
  'gateway/mail': [],
  'gateway/audit': [],
  'gateway/webhooks': ['gateway/mail'],
  'gateway/limits': ['gateway/webhooks'],
  'gateway/cloud': [],
  'gateway/catalog': ['gateway/cloud'],
  'gateway/orgs': ['gateway/limits', 'gateway/webhooks', 'gateway/mail'],
  'gateway/usage': ['gateway/catalog', 'gateway/webhooks'],
  'gateway/billing': ['gateway/orgs', 'gateway/limits', 'gateway/webhooks', 'gateway/mail'],
  'gateway/keys': ['gateway/orgs', 'gateway/limits', 'gateway/webhooks', 'gateway/mail'],
  'gateway/byok': ['gateway/orgs', 'gateway/catalog', 'gateway/cloud'],
  connect: [],
  agents: ['gateway/orgs', 'gateway/keys', 'gateway/limits', 'gateway/webhooks'],
  memory: ['gateway/orgs', 'gateway/limits'],
  'gateway/routing': ['gateway/catalog', 'gateway/byok', 'gateway/cloud', 'gateway/webhooks'],
  'gateway/collections': ['gateway/catalog', 'gateway/routing', 'gateway/webhooks', 'gateway/mail'],
  'gateway/compliance': ['gateway/usage', 'gateway/orgs', 'gateway/catalog'],
  'gateway/hints': [],
  'gateway/tools': ['gateway/orgs', 'gateway/limits', 'gateway/usage', 'gateway/webhooks', 'gateway/audit', 'agents'],
  'gateway/operator': [
    'gateway/orgs',
    'gateway/usage',
    'gateway/mail',
    'gateway/webhooks',
    'gateway/catalog',
    'gateway/routing',
    'gateway/byok',
    'gateway/cloud',
  ],
  'gateway/access': ['gateway/orgs', 'gateway/keys', 'gateway/audit', 'agents'],
  'gateway/batches': ['gateway/catalog', 'gateway/routing', 'gateway/limits', 'gateway/usage', 'gateway/webhooks', 'gateway/inference'],
  'gateway/inference': [
    'gateway/catalog',
    'gateway/cloud',
    'gateway/byok',
    'gateway/routing',
    'gateway/limits',
    'gateway/usage',
    'gateway/billing',
    'gateway/orgs',
  ],
}

const folders = names => `^src/(${names.join('|')})/`

const domainRules = Object.entries(peers).map(([domain, allowed]) => ({
  name: `peers-of-${domain.replace('/', '-')}`,
  comment: `src/${domain} may import platform, gateway/wire, gateway/providers${allowed.length === 0 ? '' : ` and ${allowed.join(', ')}`}.`,
  severity: 'error',
  // The toolkit ships to clients and has a rule of its own.
  from: { path: folders([domain]), pathNot: '^src/agents/toolkit/' },
  to: { path: '^src/', pathNot: [platform, folders(['gateway/wire', 'gateway/providers', domain, ...allowed])] },
}))

/** SQL belongs to the domain whose tables it reads: a domain asks another one through its functions, never through its statements. */
const queryRules = [...Object.keys(peers), 'operations'].map(domain => ({
  name: `queries-of-${domain.replace('/', '-')}-are-private`,
  comment: `The SQL statements of src/${domain} are for src/${domain} only.`,
  severity: 'error',
  from: { path: '^src/', pathNot: folders([domain]) },
  to: { path: `^src/${domain}/.*queries\\.ts$` },
}))

/** A package that only the named files may import. */
const packageRule = (name, packages, allowed) => ({
  name: `only-here-${name}`,
  comment: `${packages} is imported in ${allowed} only.`,
  severity: 'error',
  from: { path: '^src/', pathNot: allowed },
  to: { path: `(^|node_modules/)(${packages})(/|$)` },
})

module.exports = {
  forbidden: [
    { name: 'no-cycles', comment: 'A cycle has no first file to read.', severity: 'error', from: {}, to: { circular: true } },
    { name: 'resolvable', comment: 'Every import resolves.', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'platform-knows-nothing',
      comment: 'platform has no product knowledge: it imports no other folder of src.',
      severity: 'error',
      from: { path: platform },
      to: { path: '^src/', pathNot: platform },
    },
    {
      name: 'wire-is-pure',
      comment:
        'gateway/wire imports errors, money, json, the count of digits, the seed of hashes and type-level contracts of platform; ids and time come as arguments.',
      severity: 'error',
      from: { path: '^src/gateway/wire/' },
      to: { path: '^src/', pathNot: ['^src/gateway/wire/', '^src/platform/(errors|values/(money|json|assert|hash-seed|digits))\\.ts$'] },
    },
    {
      name: 'providers-below-domains',
      comment: 'gateway/providers imports wire and platform.',
      severity: 'error',
      from: { path: '^src/gateway/providers/' },
      to: { path: '^src/', pathNot: [platform, '^src/gateway/(wire|providers)/'] },
    },
    ...domainRules,
    {
      name: 'every-domain-has-a-row',
      comment: 'A new folder below src/gateway, or beside it, gets a row in the peers table above first.',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: [
          platform,
          folders([
            ...Object.keys(peers),
            'gateway/wire',
            'gateway/providers',
            'gateway/http',
            'mcp',
            'sandbox',
            'cli',
            'composition',
            'operations',
            'console',
          ]),
          '^src/(main|version)\\.ts$',
        ],
      },
      to: {},
    },
    {
      name: 'edges',
      comment: 'HTTP and MCP bind endpoint rows: they import endpoints.ts files, access, inference, platform, wire and each other, nothing deeper.',
      severity: 'error',
      from: { path: '^src/(gateway/http|mcp)/' },
      to: {
        path: '^src/',
        pathNot: [
          platform,
          '^src/version\\.ts$',
          '^src/(gateway/http|gateway/access|gateway/wire|gateway/inference|mcp)/',
          '^src/(gateway|agents|memory|connect)/.*endpoints\\.ts$',
        ],
      },
    },
    {
      name: 'nobody-imports-edges',
      comment: 'Only composition, operations, the command line and main.ts know the edges.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(gateway/http|mcp|cli|composition|operations)/|^src/main\\.ts$' },
      to: { path: '^src/(gateway/http|mcp|cli|composition|operations)/|^src/main\\.ts$' },
    },
    {
      name: 'nobody-imports-the-command-line',
      comment: 'The gateway does not depend on the program that a person types.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(cli/|main\\.ts$)' },
      to: { path: '^src/cli/' },
    },
    {
      name: 'the-operator-starts-the-gateway',
      comment: 'Of the command line, only the programs for the machine of the gateway import composition and operations.',
      severity: 'error',
      from: { path: '^src/cli/', pathNot: '^src/cli/operator/' },
      to: { path: '^src/(composition|operations)/' },
    },
    ...queryRules,
    {
      name: 'endpoints-are-for-edges',
      comment: 'endpoints.ts is imported by the endpoint table and by the list of rows that MCP calls only.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/gateway/http/rows/(endpoint-table|hot-routes)\\.ts$|^src/mcp/mcp-rows\\.ts$' },
      to: { path: '/endpoints\\.ts$' },
    },
    {
      name: 'endpoints-stay-home',
      comment: 'endpoints.ts imports its own folder and platform.',
      severity: 'error',
      from: { path: '^src/(gateway/[^/]+|agents|memory|connect|mcp).*/endpoints\\.ts$' },
      to: { path: '^src/', pathNot: [platform, '^src/$1/'] },
    },
    {
      name: 'inference-knows-no-dialect',
      comment: 'The pipeline asks the registry; it never names a dialect.',
      severity: 'error',
      from: { path: '^src/gateway/inference/' },
      to: { path: '^src/gateway/providers/(dialects|images)/' },
    },
    {
      name: 'sandbox-shares-nothing',
      comment: 'The simulated provider is an oracle: it must not share the code that it checks.',
      severity: 'error',
      from: { path: '^src/sandbox/' },
      to: { path: '^src/', pathNot: [platform, '^src/sandbox/'] },
    },
    {
      name: 'toolkit-stands-alone',
      comment: 'The toolkit ships to clients.',
      severity: 'error',
      from: { path: '^src/agents/toolkit/' },
      to: { path: '^src/', pathNot: '^src/agents/toolkit/' },
    },
    {
      name: 'console-imports-nothing-else',
      comment: 'The console runs in a browser. It knows the gateway through api/api.gen.ts only.',
      severity: 'error',
      from: { path: webConsole },
      to: { path: '^src/', pathNot: webConsole },
    },
    {
      name: 'nobody-imports-the-console',
      comment: 'The gateway serves the built files of the console and imports none of them.',
      severity: 'error',
      from: { path: '^src/', pathNot: webConsole },
      to: { path: webConsole },
    },
    {
      name: 'console-packages',
      comment: 'The console imports packages for a browser only.',
      severity: 'error',
      from: { path: webConsole },
      to: { pathNot: ['^src/', browserPackages] },
    },
    {
      name: 'no-tests-in-src',
      comment: 'src never imports tests or benches.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|bench|scripts)/' },
    },
    packageRule('browser', 'react|react-dom|@tanstack/[^/]+|@codemirror/[^/]+|@lezer/[^/]+|diff', webConsole),
    packageRule('pg', 'pg|pg-[^/]+', '^src/platform/db/postgres/'),
    packageRule('pglite', '@electric-sql/[^/]+', '^src/platform/db/embedded/'),
    packageRule('express', 'express', '^src/(gateway/http/|mcp/transport\\.ts$)'),
    packageRule('undici', 'undici', '^src/platform/outbound/'),
    packageRule('aws', '@aws-sdk/[^/]+|@smithy/[^/]+', '^src/(memory/stores/s3|gateway/(cloud|providers/clouds))/'),
    packageRule('google', 'google-auth-library', '^src/gateway/cloud/'),
    packageRule('jose', 'jose', '^src/(agents|gateway/(access|cloud))/'),
    packageRule('mcp', '@modelcontextprotocol/[^/]+', '^src/(mcp|cli|gateway/tools)/'),
    packageRule('nodemailer', 'nodemailer', '^src/gateway/mail/'),
    packageRule('openid', 'openid-client', '^src/gateway/(access|tools)/'),
    packageRule('cookie', 'cookie', '^src/gateway/(access|http)/'),
    packageRule('commander', 'commander', '^src/cli/'),
    packageRule('prom-client', 'prom-client', '^src/platform/observe/metrics\\.ts$'),
    packageRule('opentelemetry', '@opentelemetry/[^/]+', '^src/platform/observe/telemetry-otel\\.ts$'),
    {
      name: 'no-development-packages',
      comment: 'What src imports at run time stands in dependencies.',
      severity: 'error',
      from: { path: '^src/', pathNot: webConsole },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], pathNot: 'node_modules/@types/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Reads type-only imports as well; @swc/core parses, because the cruiser does not know this major of TypeScript.
    tsPreCompilationDeps: true,
    parser: 'swc',
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.tsx', '.mts', '.js', '.mjs', '.json'],
    },
  },
}
