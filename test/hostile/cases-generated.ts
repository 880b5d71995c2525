/** Rows whose bytes are generated: the seed is printed, and HOSTILE_SEED plays it again. */
import fc from 'fast-check'
import { type HostileCase, isAnything, json } from './cases.ts'
import type { Field, Got } from './field.ts'

export const seed = Number(process.env['HOSTILE_SEED'] ?? Date.now() % 1_000_000)

/** How many of each there are; the short form has a tenth. */
const count = process.env['HOSTILE_FORM'] === 'short' ? 60 : 600

const samples = <T>(arbitrary: fc.Arbitrary<T>, salt: number): T[] => fc.sample(arbitrary, { numRuns: count, seed: seed + salt })

/** Ten at a time. */
async function inTens<T>(items: readonly T[], work: (item: T, index: number) => Promise<Got>): Promise<Got[]> {
  const got: Got[] = []
  for (let at = 0; at < items.length; at += 10) got.push(...(await Promise.all(items.slice(at, at + 10).map((item, index) => work(item, at + index)))))
  return got
}

const paths = ['/v1/chat/completions', '/v1/messages', '/v1/responses', '/v1/embeddings', '/mcp'] as const
const headers = { ...json, accept: 'application/json, text/event-stream' }

/** A body that is nearly right: known fields with values of any shape. */
const nearlyRight = fc
  .record(
    {
      model: fc.oneof({ weight: 4, arbitrary: fc.constant('honest-model') }, { weight: 1, arbitrary: fc.jsonValue() }),
      messages: fc.oneof(
        fc.jsonValue({ maxDepth: 6 }),
        fc.array(fc.record({ role: fc.constantFrom('user', 'assistant', 'tool', 'x'), content: fc.jsonValue({ maxDepth: 4 }) })),
      ),
      input: fc.jsonValue({ maxDepth: 5 }),
      tools: fc.jsonValue({ maxDepth: 5 }),
      tool_choice: fc.jsonValue({ maxDepth: 3 }),
      response_format: fc.jsonValue({ maxDepth: 5 }),
      max_tokens: fc.jsonValue({ maxDepth: 1 }),
      stream: fc.oneof(fc.boolean(), fc.jsonValue({ maxDepth: 1 })),
      stop: fc.jsonValue({ maxDepth: 2 }),
      models: fc.jsonValue({ maxDepth: 3 }),
      provider: fc.jsonValue({ maxDepth: 2 }),
      method: fc.constantFrom('tools/call', 'tools/list', 'initialize', 'x'),
      params: fc.jsonValue({ maxDepth: 5 }),
      id: fc.jsonValue({ maxDepth: 1 }),
    },
    { requiredKeys: ['model'] },
  )
  .map(value => Buffer.from(JSON.stringify(value)))

/** The same with bytes taken out, put in or doubled. */
const mutations = fc.array(fc.tuple(fc.nat(), fc.constantFrom('cut', 'flip', 'double'), fc.nat(255)), { minLength: 1, maxLength: 8 })
function mutated(bytes: Buffer, changes: readonly (readonly [number, string, number])[]): Buffer {
  let result = bytes
  for (const [place, kind, byte] of changes) {
    const at = place % (result.length + 1)
    const end = Math.min(result.length, at + 1 + (byte % 20))
    if (kind === 'cut') result = Buffer.concat([result.subarray(0, at), result.subarray(end)])
    else if (kind === 'flip') result = Buffer.concat([result.subarray(0, at), Buffer.from([byte]), result.subarray(Math.min(result.length, at + 1))])
    else result = Buffer.concat([result.subarray(0, end), result.subarray(at)])
  }
  return result
}

const delta = fc.oneof(
  fc.record({ content: fc.oneof(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 3 })) }),
  fc.record({ reasoning: fc.string(), reasoning_details: fc.jsonValue({ maxDepth: 3 }) }, { requiredKeys: [] }),
  fc.record({
    tool_calls: fc.array(
      fc.record(
        {
          index: fc.oneof(fc.nat(5), fc.jsonValue({ maxDepth: 1 })),
          id: fc.string(),
          function: fc.record({ name: fc.string(), arguments: fc.oneof(fc.string(), fc.jsonValue()) }, { requiredKeys: [] }),
        },
        { requiredKeys: [] },
      ),
      { maxLength: 4 },
    ),
  }),
  fc.dictionary(fc.constantFrom('content', 'role', 'refusal', 'audio', 'x'), fc.jsonValue({ maxDepth: 3 })),
)
const streamText = fc
  .tuple(
    fc.array(fc.tuple(delta, fc.constantFrom(null, null, null, 'stop', 'tool_calls', 'x')), { maxLength: 30 }),
    fc.oneof(fc.constant(null), fc.jsonValue({ maxDepth: 3 })),
    fc.boolean(),
    fc.constantFrom('\n', '\r\n', '\r'),
  )
  .map(([deltas, usage, isEnded, end]) => {
    const events = deltas.map(([value, finish]) =>
      JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: value, finish_reason: finish }] }),
    )
    if (usage !== null) events.push(JSON.stringify({ choices: [], usage }))
    if (isEnded) events.push('[DONE]')
    return Buffer.from(events.map(text => `data: ${text}${end}${end}`).join(''))
  })
const cuts = fc.array(fc.nat(), { maxLength: 12 })

/** The bytes cut anywhere, also inside of a character. */
function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...new Set(places.map(place => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...sorted].map((from, index) => bytes.subarray(from, sorted[index] ?? bytes.length))
}

function answerWith(field: Field, kind: string, index: number, bytes: Buffer, places: readonly number[], type: string): Promise<Got> {
  const name = `${kind}-${index}`
  field.provider.answers.set(name, async (response, write) => {
    response.setHeader('content-type', type)
    for (const part of cutAt(bytes, places)) if (!(await write(part))) return
  })
  const path = paths[index % 3] ?? paths[0]
  const body = field.callOf(name, { stream: type === 'text/event-stream' })
  return field.send({
    path,
    headers: json,
    body: path === '/v1/responses' ? body.replace('"messages":', '"input":').replace('"max_tokens":', '"max_output_tokens":') : body,
  })
}

export const generatedCases: readonly HostileCase[] = [
  {
    name: 'generated: bodies that are nearly right, on every endpoint',
    isShort: true,
    expects: got => got.status !== 0 && got.status !== 500,
    run: field => inTens(samples(nearlyRight, 1), (body, index) => field.send({ path: paths[index % paths.length] ?? paths[0], headers, body })),
  },
  {
    name: 'generated: the same with changed bytes',
    isShort: true,
    expects: got => got.status !== 0 && got.status !== 500,
    run: field =>
      inTens(samples(fc.tuple(nearlyRight, mutations), 2), ([bytes, changes], index) =>
        field.send({ path: paths[index % paths.length] ?? paths[0], headers, body: mutated(bytes, changes) }),
      ),
  },
  {
    name: 'generated: streams of any deltas, cut anywhere',
    isShort: true,
    expects: isAnything,
    run: field =>
      inTens(samples(fc.tuple(streamText, cuts), 3), ([bytes, places], index) => answerWith(field, 'any', index, bytes, places, 'text/event-stream')),
  },
  {
    name: 'generated: the same with changed bytes',
    isShort: true,
    expects: isAnything,
    run: field =>
      inTens(samples(fc.tuple(streamText, cuts, mutations), 4), ([bytes, places, changes], index) =>
        answerWith(field, 'changed', index, mutated(bytes, changes), places, 'text/event-stream'),
      ),
  },
  {
    name: 'generated: whole answers of any shape',
    isShort: true,
    expects: isAnything,
    run: field =>
      inTens(samples(fc.tuple(fc.jsonValue({ maxDepth: 8 }), cuts), 5), ([value, places], index) =>
        answerWith(
          field,
          'whole',
          index,
          Buffer.from(JSON.stringify({ choices: [{ index: 0, message: value, finish_reason: 'stop' }], usage: value })),
          places,
          'application/json',
        ),
      ),
  },
]
