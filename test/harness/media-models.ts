import { defaultOperatorFile } from './app.ts'

const price = { source: 'test', as_of: '2026-01-01' }
const media = [
  { id: 'hear', kind: 'transcription', routes: [{ provider: 'alpha', upstream_model: 'hear-up', inr_per_minute: 0.6, ...price }] },
  { id: 'say', kind: 'speech', default_voice: 'v', routes: [{ provider: 'alpha', upstream_model: 'say-up', inr_per_million_characters: 50, ...price }] },
  { id: 'rank', kind: 'rerank', routes: [{ provider: 'alpha', upstream_model: 'rank-up', inr_per_thousand_searches: 192, ...price }] },
  { id: 'guard', kind: 'moderation', routes: [{ provider: 'alpha', upstream_model: 'guard-up', input_inr_per_mtok: 10, ...price }] },
  { id: 'draw', kind: 'image', inr_per_image: 3, edits: true, routes: [{ provider: 'alpha', upstream_model: 'draw-up' }] },
]

/** Returns the default operator's file, with models of alpha for transcription, speech, images, rankings and moderations. */
export function fileWithMedia(urls: Parameters<typeof defaultOperatorFile>[0]): object {
  const file = defaultOperatorFile(urls)
  return { ...file, models: [...file.models, ...media] }
}
