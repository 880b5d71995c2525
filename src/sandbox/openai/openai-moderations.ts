import { createHash } from 'node:crypto'
import { type Exchange, objectOrNull } from '../exchange.ts'
import { openAiError, refuseModel } from '../models.ts'

/** The simulated categories. A text is in a category when it contains the word, and a picture when its address does. */
const categories = ['harassment', 'hate', 'illicit', 'self-harm', 'sexual', 'violence'] as const

interface Content {
  readonly text: string
  readonly images: readonly string[]
}

/** Serves POST /v1/moderations. Each string of a list has a result of its own, and the parts of one content have one together. Nothing is judged. */
export async function openAiModerations(exchange: Exchange): Promise<void> {
  const body = await exchange.body()
  const { model, input } = body ?? {}
  const contents = contentsOf(input)
  if (typeof model !== 'string' || contents === null)
    return exchange.json(400, openAiError('Send "model" and "input": a string, a list of strings, or a list of parts.', 'invalid_request_error', null, 'input'))
  if (refuseModel(exchange, model, ['sandbox-moderation'])) return
  const digest = createHash('sha256').update(JSON.stringify(input)).digest('hex').slice(0, 24)
  exchange.json(200, { id: `modr-${digest}`, model, results: contents.map(resultOf) })
}

function contentsOf(input: unknown): readonly Content[] | null {
  if (typeof input === 'string') return [{ text: input, images: [] }]
  if (!Array.isArray(input) || input.length === 0) return null
  const items: readonly unknown[] = input
  if (items.every(item => typeof item === 'string')) return items.map(text => ({ text, images: [] }))
  const parts = items.map(objectOrNull)
  const texts = parts.flatMap(part => (typeof part?.['text'] === 'string' ? [part['text']] : []))
  const images = parts.flatMap(part => {
    const url = objectOrNull(part?.['image_url'])?.['url']
    return typeof url === 'string' ? [url] : []
  })
  return texts.length + images.length === items.length ? [{ text: texts.join(' '), images }] : null
}

function resultOf({ text, images }: Content): object {
  const inText = (name: string): boolean => text.toLowerCase().includes(name)
  const inImage = (name: string): boolean => images.some(url => !url.startsWith('data:') && url.toLowerCase().includes(name))
  const applied = (name: string): string[] => [...(inText(name) ? ['text'] : []), ...(inImage(name) ? ['image'] : [])]
  const entries = categories.map(name => [name, applied(name)] as const)
  return {
    flagged: entries.some(([, types]) => types.length > 0),
    categories: Object.fromEntries(entries.map(([name, types]) => [name, types.length > 0])),
    category_scores: Object.fromEntries(entries.map(([name, types]) => [name, types.length > 0 ? 1 : 0])),
    category_applied_input_types: Object.fromEntries(entries),
  }
}
