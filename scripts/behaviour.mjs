/**
 * Generates docs/internals/behaviour.md from the test titles. A test that shows a numbered behaviour through HTTP or MCP has a title that begins with its
 * ids. The script reads the titles from the text of the test files, so it needs neither a build nor the test runner.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './paths.mjs'
import { filesBelow } from './tools.mjs'

/** The name of the area for the letters of an id. The document has the areas in this order. */
const areas = {
  CHAT: 'chat completions: bodies, replies, streams',
  ROUTE: 'router fields and the choice of a route',
  VIRT: 'virtual models, the `auto:` presets',
  REAS: 'reasoning models',
  IMGOPT: 'images inside chat messages',
  MSG: 'the messages API',
  RESP: 'the responses API',
  CTOK: 'counting tokens',
  EMB: 'embeddings',
  IMG: 'image models',
  PANEL: 'image panels',
  AUD: 'audio',
  CAT: 'the catalog: models, prices, providers',
  HDR: 'request and response headers',
  DISC: 'discovery: health, OpenAPI, llms.txt, cards',
  MCP: 'the MCP server for clients that open with initialize',
  MCPX: 'the MCP server for both protocol eras, cancelling, deadlines',
  AUTH: 'credentials and refusals',
  SESS: 'sign-in',
  KEY: 'API keys',
  ROTA: 'rotation of API keys',
  BYOK: 'keys that callers bring',
  ORG: 'organisations and members',
  WS: 'workspaces',
  BILL: 'credits and payments',
  PAYHOOK: 'messages of payment providers',
  INV: 'invoices',
  CHAIN: 'saved fallback chains',
  COLL: 'collections',
  MON: 'monitoring of collections',
  ENDP: 'custom endpoints',
  USAGE: 'usage reports',
  ACT: 'activity',
  RUN: 'runs of agents',
  COST: 'cost headers',
  CACHE: 'cached prompt tokens',
  ATT: 'attestations',
  DPIA: 'impact assessments',
  RCPT: 'signed receipts',
  BUDG: 'budgets',
  BUDX: 'budgets under concurrency and after a crash',
  PERI: 'periods of budgets, and their marks',
  RATE: 'headers of rate limits',
  TPM: 'tokens a minute',
  CURR: 'amounts in another currency',
  STICK: 'conversations that stay on a route',
  AGENT: 'agent identities and tokens',
  KILL: 'the kill switch',
  JWKS: 'public keys of agent tokens',
  INTR: 'token introspection and revocation',
  TXCH: 'token exchange',
  ALLOW: 'allow-lists of models and providers',
  CAPS: 'caps for one call',
  PROF: 'the coding profile',
  MEM: 'shared memory',
  MEMX: 'conditional writes, provenance, history of memory',
  MPERM: 'who may read and write which memory path',
  SHARE: 'memory shared between users',
  MOVE: 'moving data to another database or store',
  HOOK: 'outgoing webhooks',
  ERR: 'the error envelope and when to retry',
  IDEM: 'idempotency keys',
  DROP: 'request fields that a provider cannot carry',
  LIM: 'requests a minute and a day',
  LIFE: 'life cycles of keys, agents and tokens',
  PERM: 'roles',
  SCOPE: 'what each kind of credential may call',
  SHAPE: 'field names of replies',
  TOOL: 'the agent toolkit and the command line',
  TEST: 'what can be set from outside',
  LONG: 'long silent streams',
  CORS: 'calls from a browser',
  AUDIT: 'the audit log',
  BACK: 'backup and restore',
  OPS: 'operation: metrics, outages, shutdown',
  EDGE: 'requests and replies at their edges',
  HARD: 'hostile input, and fairness between organisations',
  CAPI: 'the API of the console',
  CONS: 'the console',
  FAST: 'speed, and several workers behind one port',
  FIRST: 'the first minutes',
  TGW: 'tools of MCP servers',
  CLOUD: 'clouds and more APIs of providers',
}

const intro = `# Behaviour

Made by \`npm run generate\` from the titles of the tests; change the title of the test instead.

Each line is a sentence that a test shows through the public surface: HTTP or MCP. The id in front of it is a name for one promise. Its
letters are the area, its number tells it from the others of that area; numbers mean no order and have gaps. One test may show several
promises, and one promise may have several tests. A promise without a line here has no such test. Tests below the public surface carry
no ids and are not listed.

\`…\` stands for a value that the test fills in; such a test runs once for each value. Files named \`*.multi.test.ts\` start several gateway
processes; most of them run on PostgreSQL only (CONTRIBUTING.md says how). To run the tests of one id: \`npm test -- -t CHAT-01\`.`

/** Matches a test title: a string that begins with ids and is the first or only argument of a call. */
const title = /(\.(?:skip|todo))?\(\s*(?:(['"`])((?:[A-Z]{2,8}-\d{2,3},?\s+)+)((?:\\.|(?!\2)[^\\])*)\2)/g

function sentence(text) {
  const plain = text
    .replace(/\$\{[^}]*\}|\$\w+(?:\.\w+)*|%[sdifjoO#]/g, '…')
    .replace(/\\(.)/g, '$1')
    .replace(/\s+/g, ' ')
    .trim()
  // The first word gets a capital letter, unless it is a name in code.
  return /^[a-z]+[ ,]/.test(plain) ? plain.charAt(0).toUpperCase() + plain.slice(1) : plain
}

/** Returns `{ ids, text, path }` for every test title below `base`/test. Skipped tests show nothing and are left out. */
function citedBehaviour(base) {
  return filesBelow('test', path => path.endsWith('.test.ts') && !path.startsWith('test/tooling/'), base).flatMap(path => {
    const source = readFileSync(join(base, path), 'utf8').replace(/^\s*\/\/.*$/gm, '')
    return [...source.matchAll(title)]
      .filter(match => match[1] === undefined)
      .map(match => ({ ids: match[3].trim().split(/[\s,]+/), text: sentence(match[4]), path }))
  })
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0)
const areaOf = id => id.slice(0, id.indexOf('-'))
const cell = text => text.replaceAll('|', '\\|').replaceAll('<', '&lt;')

/** Returns one row for each test of an area: the ids of that area, the sentence, and the file. The rows are in the order of their first id. */
function areaRows(cited, area) {
  const rows = cited.flatMap(({ ids, text, path }) => {
    const numbers = ids.filter(id => areaOf(id) === area).map(id => id.slice(area.length + 1))
    return numbers.length === 0 ? [] : [{ numbers: numbers.sort((a, b) => a - b), text, path }]
  })
  rows.sort((a, b) => a.numbers[0] - b.numbers[0] || compare(a.path, b.path) || compare(a.text, b.text))
  return rows.map(({ numbers, text, path }) => {
    const ids = numbers.map(number => `\`${area}-${number}\``).join(' ')
    return `| ${ids} | ${cell(text)} | [${path.slice('test/'.length, -'.test.ts'.length)}](../../${path}) |`
  })
}

/** Returns the whole document. Throws when a title cites an area that has no name above. */
export function behaviourDoc(base = root) {
  const cited = citedBehaviour(base)
  for (const { ids, path } of cited) {
    const unnamed = ids.find(id => !Object.hasOwn(areas, areaOf(id)))
    if (unnamed) throw new Error(`${path}: ${unnamed} is of an area that scripts/behaviour.mjs does not name`)
  }
  const used = Object.keys(areas).filter(area => cited.some(({ ids }) => ids.some(id => areaOf(id) === area)))
  const names = used.map(area => `| \`${area}\` | ${areas[area]} |`)
  const parts = used.map(area => `## ${area}: ${areas[area]}\n\n| ids | what is shown | by |\n|---|---|---|\n${[...new Set(areaRows(cited, area))].join('\n')}`)
  return `${intro}\n\n## Areas\n\n| letters | area |\n|---|---|\n${names.join('\n')}\n\n${parts.join('\n\n')}\n`
}
