/** What the tests of batches have in common: the operator's file, files of lines, and what the provider's answers cost. */

/** Prices of a call in ₹ per million tokens. A batch costs half, except `claude-batch`, whose catalog entry says what it costs. */
export const batchModels = {
  'gpt-batch': { provider: 'oai', input: 10, output: 40 },
  'claude-batch': { provider: 'ant', input: 30, output: 150 },
} as const
export type BatchModel = keyof typeof batchModels

/** Returns an operator's file with an OpenAI provider and an Anthropic provider, both at `url`. */
export function batchFile(url: string, secondUrl = url): { providers: object[]; models: object[] } {
  const model = (id: BatchModel, more: object = {}) => ({
    id,
    kind: 'chat',
    context_length: 100_000,
    tools: true,
    modalities: ['text', 'image'],
    max_output_tokens: 1000,
    routes: [
      {
        provider: batchModels[id].provider,
        upstream_model: `${id}-upstream`,
        input_inr_per_mtok: batchModels[id].input,
        output_inr_per_mtok: batchModels[id].output,
        source: 'test',
        as_of: '2026-01-01',
        ...more,
      },
    ],
  })
  return {
    providers: [
      { id: 'oai', base_url: url, residency: 'global', auth: 'bearer', batches: true },
      { id: 'ant', base_url: url, residency: 'global', auth: 'x-api-key', dialect: 'anthropic', batches: true },
      { id: 'second', base_url: secondUrl, residency: 'global', auth: 'bearer', batches: true },
      { id: 'nobatch', base_url: url, residency: 'global', auth: 'bearer' },
    ],
    models: [
      model('gpt-batch'),
      model('claude-batch', { batch_input_inr_per_mtok: 16, batch_output_inr_per_mtok: 70 }),
      { ...model('gpt-batch', { provider: 'second' }), id: 'second-batch' },
      { ...model('gpt-batch', { provider: 'nobatch' }), id: 'plain-model' },
    ],
  }
}

export const batchKeys = { OAI_API_KEY: 'oai-platform-secret', ANT_API_KEY: 'ant-platform-secret', SECOND_API_KEY: 'second-secret', NOBATCH_API_KEY: 'none' }

export const chatLine = (id: string, more: object = {}): object => ({
  custom_id: id,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'gpt-batch', max_tokens: 20, messages: [{ role: 'user', content: `Hello ${id}` }], ...more },
})

export const linesOf = (count: number, more: object = {}): object[] => Array.from({ length: count }, (_, index) => chatLine(`line-${index}`, more))

export const jsonl = (lines: readonly object[]): string => lines.map(line => JSON.stringify(line)).join('\n')

/** Returns the price of answers in micro-rupees, at ₹5 and ₹20 (`gpt-batch`) or ₹16 and ₹70 (`claude-batch`) per million tokens. */
export function worthOf(model: BatchModel, tokens: { readonly input: number; readonly output: number }): bigint {
  const [input, output] = model === 'gpt-batch' ? [5n, 20n] : [16n, 70n]
  return BigInt(tokens.input) * input + BigInt(tokens.output) * output
}
