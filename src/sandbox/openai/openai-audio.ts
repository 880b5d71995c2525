import { createHash } from 'node:crypto'
import busboy from 'busboy'
import { pieces } from '../answer.ts'
import type { Exchange } from '../exchange.ts'
import { openAiError, refuseModel } from '../models.ts'
import { spokenSamples, wavHeader, wavSeconds } from '../sound.ts'

/** The number of sound bytes in one write. */
const pieceBytes = 16_384
/** The assumed number of bytes per second of a recording that is not WAV. */
const otherBytesPerSecond = 16_000
const inputMaxChars = 4096

interface SpeechBody extends Record<string, unknown> {
  readonly model: string
  readonly input: string
}

/** Serves POST /v1/audio/speech. The sound is one tone for each character, as WAV or as raw samples. Other formats are refused. */
export async function openAiSpeech(exchange: Exchange): Promise<void> {
  const body = await exchange.body()
  if (!isSpeech(body)) return refuse(exchange, 'Send "model" and "input": a text that is not empty.', 'input')
  if (refuseModel(exchange, body.model, ['sandbox-speech'])) return
  if (Array.from(body.input).length > inputMaxChars) return refuse(exchange, `"input" may have ${inputMaxChars} characters at most.`, 'input')
  const format = body['response_format'] ?? 'wav'
  if (format !== 'wav' && format !== 'pcm')
    return refuse(
      exchange,
      `The sandbox makes wav and pcm only, not ${JSON.stringify(format).slice(0, 20)}: leave "response_format" out or send "wav".`,
      'response_format',
    )
  const speed = typeof body['speed'] === 'number' && body['speed'] >= 0.25 && body['speed'] <= 4 ? body['speed'] : 1
  const samples = spokenSamples(body.input, speed)
  const sound = format === 'wav' ? Buffer.concat([wavHeader(samples.length), samples]) : samples
  exchange.beginBytes(format === 'wav' ? 'audio/wav' : 'audio/pcm')
  for (let at = 0; at < sound.length; at += pieceBytes) await exchange.write(sound.subarray(at, at + pieceBytes))
  exchange.end()
}

function isSpeech(body: Record<string, unknown> | null): body is SpeechBody {
  return typeof body?.['model'] === 'string' && typeof body['input'] === 'string' && body['input'] !== ''
}

interface Recording {
  readonly model: string
  readonly format: string
  readonly isStream: boolean
  readonly language: string
  readonly filename: string
  readonly bytes: Buffer
}

/** Serves POST /v1/audio/transcriptions. The transcript says what was received, how long it lasts, and that nothing has listened to it. */
export async function openAiTranscription(exchange: Exchange): Promise<void> {
  const recording = await recordingOf(exchange)
  if (recording === null) return refuse(exchange, 'Send a multipart form with "model" and an audio file in "file".', 'file')
  if (refuseModel(exchange, recording.model, ['sandbox-audio'])) return
  const { bytes, filename, language } = recording
  const duration = wavSeconds(bytes) ?? bytes.length / otherBytesPerSecond
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
  const text = `This is a simulated transcript from the sandbox provider; nobody has listened. The file ${filename} lasts ${duration.toFixed(2)} seconds (digest ${digest}).`
  const usage = { type: 'duration', seconds: Math.max(1, Math.ceil(duration)) }
  if (recording.isStream) return stream(exchange, text, usage)
  switch (recording.format) {
    case 'json':
      return exchange.json(200, { text, usage })
    case 'text':
      return exchange.text(`${text}\n`, 'text/plain; charset=utf-8')
    case 'srt':
      return exchange.text(`1\n00:00:00,000 --> ${timestamp(duration, ',')}\n${text}\n\n`, 'text/plain; charset=utf-8')
    case 'vtt':
      return exchange.text(`WEBVTT\n\n00:00:00.000 --> ${timestamp(duration, '.')}\n${text}\n\n`, 'text/vtt; charset=utf-8')
    case 'verbose_json':
      return exchange.json(200, { task: 'transcribe', language, duration, text, segments: [{ id: 0, start: 0, end: duration, text }], usage })
    default:
      return refuse(exchange, '"response_format" must be json, text, srt, vtt or verbose_json.', 'response_format')
  }
}

async function stream(exchange: Exchange, text: string, usage: object): Promise<void> {
  exchange.beginStream()
  for (const word of pieces(text))
    await exchange.write(`event: transcript.text.delta\ndata: ${JSON.stringify({ type: 'transcript.text.delta', delta: word })}\n\n`)
  await exchange.write(`event: transcript.text.done\ndata: ${JSON.stringify({ type: 'transcript.text.done', text, usage })}\n\n`)
  exchange.end()
}

function refuse(exchange: Exchange, message: string, param: string): void {
  exchange.json(400, openAiError(message, 'invalid_request_error', null, param))
}

/** Returns a time such as `00:00:01,500`. */
function timestamp(seconds: number, mark: string): string {
  const ms = Math.round(seconds * 1000)
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}${mark}${String(ms % 1000).padStart(3, '0')}`
}

/** Returns the form, or null if the body is not a form or lacks a required field. */
async function recordingOf(exchange: Exchange): Promise<Recording | null> {
  const raw = await exchange.raw()
  const fields = new Map<string, string>()
  let file: { readonly filename: string; readonly bytes: Buffer } | null = null
  try {
    const parser = busboy({ headers: { 'content-type': exchange.contentType }, defParamCharset: 'utf8' })
    parser.on('field', (name, value) => fields.set(name, value))
    parser.on('file', (name, part, { filename }) => {
      const chunks: Buffer[] = []
      part.on('data', (chunk: Buffer) => chunks.push(chunk))
      part.on('close', () => {
        if (name === 'file') file = { filename: filename ?? 'unnamed', bytes: Buffer.concat(chunks) }
      })
    })
    await new Promise((resolve, reject) => parser.on('close', resolve).on('error', reject).end(raw))
  } catch {
    return null
  }
  const found = file as { readonly filename: string; readonly bytes: Buffer } | null
  const model = fields.get('model')
  if (found === null || model === undefined) return null
  return {
    ...found,
    model,
    format: fields.get('response_format') ?? 'json',
    isStream: fields.get('stream') === 'true',
    language: fields.get('language') ?? 'en',
  }
}
