import { hasDialect } from '../../src/gateway/providers/dialects.ts'
import type { DialectId } from '../../src/gateway/providers/provider.ts'
import { startUpstream, type UpstreamServer } from './upstream-server.ts'

/** One scripted server for each dialect. By default each answers in the format of its dialect, and scripts can change the answer. */
export interface DialectUpstreams {
  /** Anthropic messages. */
  readonly claude: UpstreamServer
  /** Gemini generateContent. */
  readonly gem: UpstreamServer
  /** OpenAI responses. */
  readonly resp: UpstreamServer
  close(): Promise<void>
}

/** The model of each dialect. `claude-test` needs the caller's own key, and the other models use the platform key. */
export const modelOfDialect = {
  openai: 'openai-model',
  anthropic: 'anthropic-model',
  gemini: 'gemini-model',
  'openai-responses': 'responses-model',
} as const satisfies Record<DialectId, string>

export async function startDialectUpstreams(): Promise<DialectUpstreams> {
  const [claude, gem, resp] = await Promise.all([startUpstream(), startUpstream(), startUpstream()])
  return {
    claude,
    gem,
    resp,
    async close() {
      await Promise.all([claude.close(), gem.close(), resp.close()])
    },
  }
}

/**
 * Returns provider rows of the operator's file, without dialects that the build does not support. `newer` is an OpenAI provider that accepts only
 * `max_completion_tokens`.
 */
export function dialectProviders(others: DialectUpstreams, alphaUrl: string): object[] {
  const provider = (id: string, dialect: DialectId, base_url: string, auth: string, more: object = {}) => ({
    id,
    dialect,
    base_url,
    auth,
    residency: 'global',
    ...more,
  })
  return [
    provider('newer', 'openai', alphaUrl, 'bearer', { quirks: ['max-completion-tokens'] }),
    provider('claude', 'anthropic', others.claude.url, 'x-api-key'),
    provider('gem', 'gemini', others.gem.url, 'x-api-key'),
    provider('resp', 'openai-responses', others.resp.url, 'bearer'),
  ].filter(({ dialect }) => hasDialect(dialect))
}

/**
 * Returns the models. All support tools, images and thinking, and two support sound for ₹100. Other prices per million tokens: ₹10 input, ₹40 output, ₹1
 * cached, ₹12 written to the cache.
 */
export function dialectModels(): object[] {
  const model = (id: string, dialect: DialectId, provider: string, upstream_model: string, more: object = {}) => ({
    dialect,
    row: {
      id,
      kind: 'chat',
      context_length: 200_000,
      max_output_tokens: 8192,
      tools: true,
      reasoning: true,
      modalities: ['text', 'image'],
      routes: [
        {
          provider,
          upstream_model,
          input_inr_per_mtok: 10,
          output_inr_per_mtok: 40,
          cached_input_inr_per_mtok: 1,
          cache_write_inr_per_mtok: 12,
          source: 'test',
          as_of: '2026-01-01',
          ...more,
        },
      ],
    },
  })
  return [
    model('openai-model', 'openai', 'alpha', 'openai-upstream'),
    model('openai-newer-model', 'openai', 'newer', 'openai-newer-upstream'),
    model('claude-test', 'anthropic', 'claude', 'claude-test', { byok_only: true }),
    model('anthropic-model', 'anthropic', 'claude', 'anthropic-upstream'),
    model('gemini-model', 'gemini', 'gem', 'gemini-upstream', { audio_input_inr_per_mtok: 100 }),
    model('responses-model', 'openai-responses', 'resp', 'responses-upstream', { audio_input_inr_per_mtok: 100 }),
  ].flatMap(({ dialect, row }) => (hasDialect(dialect) ? [row] : []))
}
