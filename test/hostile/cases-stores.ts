/** Hostile memory stores of an organisation. */
import { type HostileCase, isAnything, isRefused, json, mib } from './cases.ts'
import type { Field, Got } from './field.ts'
import type { HostileStore } from './hostile-peers.ts'

type Misbehave = HostileStore['misbehave']

const entry = (index: number): string =>
  `<Contents><Key>org-2/users/2/${String(index).padStart(9, '0')}.md</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;0123456789abcdef0123456789abcdef&quot;</ETag><Size>1</Size></Contents>`
const page = (entries: string, token: string | null): string =>
  `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><IsTruncated>${token !== null}</IsTruncated>${token === null ? '' : `<NextContinuationToken>${token}</NextContinuationToken>`}${entries}</ListBucketResult>`

/** Misbehaves only for lists, so that the store can be configured. */
const atLists =
  (answer: Misbehave): Misbehave =>
  async (request, response, write) => {
    if (request.method !== 'GET' || !request.url?.includes('list-type=2')) return false
    response.setHeader('content-type', 'application/xml')
    return await answer(request, response, write)
  }

const listOf = (text: () => string): Misbehave =>
  atLists(async (_request, _response, write) => {
    await write(text())
    return true
  })

let pages = 0
const bigPage = (): string => {
  pages++
  return page(Array.from({ length: 38_000 }, (_, index) => entry(pages * 38_000 + index)).join(''), `t${pages}`)
}

/** A list page within the allowed number of bytes whose content takes a parser long. */
const heavyPage = (part: string): Misbehave => listOf(() => page(`${entry(1)}<Name>${part.repeat(Math.floor(1_190_000 / part.length))}</Name>`, null))

const slowly: Misbehave = atLists(async (_request, _response, write) => {
  const text = page(entry(1), null)
  for (const letter of text) {
    if (!(await write(letter))) return true
    await new Promise(done => setTimeout(done, 100))
  }
  return true
})

const endless: Misbehave = atLists(async (_request, _response, write) => {
  if (!(await write('<?xml version="1.0"?><ListBucketResult>'))) return true
  const block = Array.from({ length: 300 }, (_, index) => entry(index)).join('')
  for (let size = 0; size < 300 * mib; size += block.length) if (!(await write(block))) return true
  return true
})

const endlessObject: Misbehave = async (request, response, write) => {
  if (request.method !== 'GET' || request.url?.includes('list-type=2')) return false
  response.setHeader('content-type', 'text/markdown')
  const block = Buffer.alloc(65_536, 97)
  for (let size = 0; size < 300 * mib; size += block.length) if (!(await write(block))) return true
  return true
}

const fatHeads: Misbehave = async (request, response) => {
  if (request.method !== 'HEAD' && request.method !== 'GET') return false
  for (let index = 0; index < 100; index++) response.setHeader(`x-amz-meta-m${index}`, 'a'.repeat(140))
  return true
}

const rows: readonly (readonly [name: string, isShort: boolean, misbehave: Misbehave])[] = [
  ['endless pages of 8 MiB', true, listOf(bigPage)],
  [
    'pages of 1,000 entries, without an end',
    false,
    atLists(async (_request, _response, write) => {
      pages++
      await write(page(Array.from({ length: 1000 }, (_, index) => entry(pages * 1000 + index)).join(''), `t${pages}`))
      return true
    }),
  ],
  ['the same page every time', false, listOf(() => page(entry(1), 'same'))],
  ['a list of 300 MB', true, endless],
  ['a list that is sent byte by byte', false, slowly],
  ['a list with 4 MiB of nested elements', true, listOf(() => `<?xml version="1.0"?>${'<a>'.repeat(1.4 * mib)}`)],
  [
    'a list with entities in entities',
    true,
    listOf(
      () =>
        `<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">${Array.from({ length: 9 }, (_, i) => `<!ENTITY ${'bcdefghij'[i]} "${`&${'abcdefghi'[i]};`.repeat(10)}">`).join('')}]><ListBucketResult><Contents><Key>&j;</Key></Contents></ListBucketResult>`,
    ),
  ],
  [
    'a list of 8 MiB of attributes',
    false,
    listOf(() => `<?xml version="1.0"?><ListBucketResult ${Array.from({ length: 600_000 }, (_, i) => `a${i}="1"`).join(' ')}></ListBucketResult>`),
  ],
  ['a list of escapes', true, heavyPage('&amp;')],
  ['a list of empty elements', false, heavyPage('<a/>')],
  ['a list of elements with attributes', false, heavyPage('<a b="&amp;"/>')],
  ['an endless object', true, endlessObject],
  ['reply headers of the maximum length', false, fatHeads],
]

async function useAll(field: Field): Promise<Got[]> {
  const get = (path: string): Promise<Got> => field.send({ method: 'GET', path, timeoutMs: 90_000 })
  return [
    await field.useStore(),
    await get('/v1/me/memory/list?prefix=users/2/&limit=10'),
    await get('/v1/me/memory/o?key=users/2/any.md'),
    await field.send({
      path: '/mcp',
      headers: { ...json, accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'memory_search', arguments: { query: 'any' } } }),
      timeoutMs: 90_000,
    }),
  ]
}

export const storeCases: readonly HostileCase[] = rows.map(([name, isShort, misbehave]) => ({
  name: `store: ${name}`,
  isShort,
  expects: (got: Got) => isAnything(got) || isRefused(got),
  async run(field) {
    // The store behaves normally during its first configuration and misbehaves afterwards.
    await field.useStore()
    field.store.misbehave = misbehave
    try {
      return await useAll(field)
    } finally {
      field.store.misbehave = async () => false
    }
  },
}))
