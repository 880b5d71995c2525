/** Valid requests of OpenAI clients, in all forms that the format allows. */
import fc from 'fast-check'

const plain = fc
  .string({ minLength: 1, maxLength: 12, unit: fc.constantFrom('a', 'Z', ' ', 'न', '😀', '"', '\\', '\n', '\u2028', '.') })
  .filter(text => text.trim() !== '')
const toolName = fc.constantFrom('get_weather', 'search', 'Run-It', 'a_tool_with_a_name_of_exactly_sixty_four_characters_in_its_lengt')
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const textPart = fc.record({ text: plain }).map(({ text }) => ({ type: 'text', text }))
const imagePart = fc.constantFrom(
  { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } },
  { type: 'image_url', image_url: { url: 'https://images.test/a.png' } },
)
const userContent = fc.oneof(plain, fc.array(fc.oneof(textPart, imagePart), { minLength: 1, maxLength: 3 }))
const plainContent = fc.oneof(plain, fc.array(textPart, { minLength: 1, maxLength: 2 }))

const input = fc.dictionary(fc.constantFrom('city', 'n', 'deep'), fc.oneof(plain, fc.integer(), fc.constant(null), fc.constant({ a: [1, { b: true }] })), {
  maxKeys: 3,
  noNullPrototype: true,
})

/** An assistant message that calls tools, directly followed by the results. */
const toolTurn = fc
  .record({
    said: fc.option(plain),
    calls: fc.array(fc.record({ name: toolName, input, result: fc.oneof(plain, fc.array(textPart, { minLength: 1, maxLength: 2 })) }), {
      minLength: 1,
      maxLength: 3,
    }),
    tag: fc.stringMatching(/^[a-z0-9]{6}$/),
  })
  .map(({ said, calls, tag }) => [
    {
      role: 'assistant',
      content: said,
      tool_calls: calls.map(({ name, input: given }, index) => ({
        id: `call_${tag}${index}`,
        type: 'function',
        function: { name, arguments: JSON.stringify(given) },
      })),
    },
    ...calls.map(({ result }, index) => ({ role: 'tool', tool_call_id: `call_${tag}${index}`, content: result })),
  ])

const turn = fc.oneof(
  { weight: 3, arbitrary: userContent.map(content => [{ role: 'user', content }]) },
  { weight: 2, arbitrary: plainContent.map(content => [{ role: 'assistant', content }]) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('system', 'developer'), plainContent).map(([role, content]) => [{ role, content }]) },
  { weight: 2, arbitrary: toolTurn },
)

/** Ids of calls are unique in a request. */
const messages = fc.tuple(userContent, fc.array(turn, { maxLength: 5 })).map(([first, rest]) => {
  const all = [[{ role: 'user', content: first }], ...rest].map(
    (group, place) => JSON.parse(JSON.stringify(group).replaceAll('"call_', `"call_${place}`)) as object[],
  )
  return all.flat()
})

const schema = fc.constantFrom(
  { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
  { type: 'object', properties: {} },
  { type: 'object', $defs: { at: { type: 'string' } }, properties: { at: { $ref: '#/$defs/at' } }, required: ['at'], additionalProperties: false },
)
const tools = fc
  .uniqueArray(fc.record({ name: toolName, description: plain, parameters: schema }), { selector: tool => tool.name, minLength: 1, maxLength: 3 })
  .map(list => list.map(tool => ({ type: 'function', function: tool })))

const choice = fc.constantFrom('auto', 'none', 'required', 'first')
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined })

/** Fields that some dialects cannot carry, with values that ask for something. */
export const rareFields = fc.record(
  {
    seed: fc.constant(7),
    logit_bias: fc.constant({ '50256': -100 }),
    logprobs: fc.constant(true),
    top_logprobs: fc.constant(3),
    frequency_penalty: fc.constant(0.5),
    presence_penalty: fc.constant(0.5),
    prediction: fc.constant({ type: 'content', content: 'x' }),
    verbosity: fc.constant('low'),
    x_vendor_option: fc.constant({ deep: 1 }),
    n: fc.constant(2),
  },
  { requiredKeys: [] },
)

/** A request without the rare fields. */
export const chatRequests: fc.Arbitrary<Record<string, unknown>> = fc
  .record({
    messages,
    tools: optional(tools),
    choice: optional(choice),
    parallel: optional(fc.boolean()),
    max_tokens: optional(fc.integer({ min: 2000, max: 4000 })),
    temperature: optional(fc.constantFrom(0, 0.5, 1)),
    stop: optional(fc.oneof(plain, fc.array(plain, { minLength: 1, maxLength: 3 }))),
    user: optional(fc.constant('user-1')),
    reasoning_effort: optional(fc.constantFrom('low', 'medium', 'high')),
    response_format: optional(
      fc.constant({
        type: 'json_schema',
        json_schema: {
          name: 'answer',
          strict: true,
          schema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false },
        },
      }),
    ),
  })
  .map(({ choice: chosen, parallel, tools: given, response_format, ...rest }) => {
    const body: Record<string, unknown> = { model: 'the-model', ...rest }
    if (given !== undefined) {
      body['tools'] = given
      if (chosen !== undefined) body['tool_choice'] = chosen === 'first' ? { type: 'function', function: { name: given[0]?.function.name } } : chosen
      if (parallel !== undefined) body['parallel_tool_calls'] = parallel
    } else if (response_format !== undefined) body['response_format'] = response_format
    return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
  })
