import type { Exchange } from '../exchange.ts'
import { openAiError, refuseModel } from '../models.ts'
import { nameOf, type Picture, pictureNamed, pictureOf, pngOf } from '../picture.ts'

/** The path under which the pictures of replies are served. */
export const pictureFolder = '/v1/images/pictures/'
const imagesMax = 10

interface Asked {
  readonly prompt: string
  readonly n: number
  readonly width: number
  readonly height: number
  readonly isBase64: boolean
}

/**
 * Serves POST /v1/images/generations. Pictures are patterns that are made from the prompt. With the prompt `fail <status>` the request fails, with
 * `hang` it gets no answer, and with `empty` the reply has no picture.
 */
export async function openAiImages(exchange: Exchange): Promise<void> {
  const body = await exchange.body()
  if (body === null) return bad(exchange, 'Send a JSON object with "model" and "prompt".', null)
  await answer(exchange, body, [])
}

/** Serves POST /v1/images/edits, which takes a form. The patterns depend on the uploaded pictures too. */
export async function openAiImageEdits(exchange: Exchange): Promise<void> {
  const form = await formOf(exchange)
  if (form === null) return bad(exchange, 'Send a multipart form with "model", "prompt" and "image".', null)
  const files = [...form.getAll('image'), ...form.getAll('image[]')].filter(file => typeof file !== 'string')
  if (files.length === 0) return bad(exchange, '"image" must be a file.', 'image')
  const mask = form.get('mask')
  if (mask !== null && typeof mask !== 'string') files.push(mask)
  const body: Record<string, unknown> = {}
  for (const name of ['model', 'prompt', 'size', 'response_format']) body[name] = form.get(name) ?? undefined
  const n = form.get('n')
  await answer(
    exchange,
    { ...body, n: n === null ? undefined : Number(n) },
    await Promise.all(files.map(async file => new Uint8Array(await file.arrayBuffer()))),
  )
}

/** Serves the GET of a picture that a reply named. */
export function picture(exchange: Exchange, path: string): void {
  const found = pictureNamed(path.slice(pictureFolder.length))
  if (found === null) exchange.json(404, openAiError('There is no such picture.', 'invalid_request_error', 'not_found'))
  else exchange.bytes(pngOf(found), 'image/png')
}

async function formOf(exchange: Exchange): Promise<FormData | null> {
  const bytes = await exchange.raw()
  try {
    return await new Response(bytes, { headers: { 'content-type': exchange.contentType } }).formData()
  } catch {
    return null
  }
}

async function answer(exchange: Exchange, body: Readonly<Record<string, unknown>>, files: readonly Uint8Array[]): Promise<void> {
  const asked = askedOf(exchange, body)
  if (asked === null || refuseModel(exchange, String(body['model']), ['sandbox-image'])) return
  const { prompt, n, isBase64 } = asked
  const failing = /^fail ([45]\d\d)$/.exec(prompt.trim())?.[1]
  if (failing !== undefined)
    return exchange.json(Number(failing), openAiError(`Simulated failure with status ${failing}.`, 'server_error', `sandbox_${failing}`))
  if (prompt.trim() === 'hang') return await exchange.hang()
  const count = prompt.trim() === 'empty' ? 0 : n
  const pictures = Array.from({ length: count }, (_, index) => pictureOf([prompt, String(index), ...files], asked.width, asked.height))
  exchange.json(200, {
    created: Math.floor(exchange.clock.nowMs() / 1000),
    data: pictures.map(one => (isBase64 ? { b64_json: pngOf(one).toString('base64') } : { url: addressOf(exchange, one) })),
  })
}

const addressOf = (exchange: Exchange, one: Picture): string => `http://${exchange.host}${pictureFolder}${nameOf(one)}`

/** Returns the parameters. Returns null if it has already answered with an error. */
function askedOf(
  exchange: Exchange,
  { model, prompt, n = 1, size = '1024x1024', response_format: format = 'url' }: Readonly<Record<string, unknown>>,
): Asked | null {
  const dimensions = typeof size === 'string' ? /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(size) : null
  if (typeof model !== 'string' || typeof prompt !== 'string' || prompt === '') bad(exchange, '"model" and "prompt" must be strings.', 'prompt')
  else if (typeof n !== 'number' || !Number.isInteger(n) || n < 1 || n > imagesMax) bad(exchange, `"n" must be a whole number from 1 to ${imagesMax}.`, 'n')
  else if (dimensions === null) bad(exchange, '"size" must be WIDTHxHEIGHT.', 'size')
  else if (format !== 'url' && format !== 'b64_json') bad(exchange, '"response_format" must be "url" or "b64_json".', 'response_format')
  else return { prompt, n, width: Number(dimensions[1]), height: Number(dimensions[2]), isBase64: format === 'b64_json' }
  return null
}

function bad(exchange: Exchange, message: string, param: string | null): void {
  exchange.json(400, openAiError(message, 'invalid_request_error', null, param))
}
