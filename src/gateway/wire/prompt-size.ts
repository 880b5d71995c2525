/**
 * What a prompt comes to before its provider has counted it. Every text of a body counts, under whichever name it comes, because nobody knows
 * what a provider reads as prompt. Media count by the piece. Decision 0416 says why.
 */
import { isObject } from '../../platform/values/json.ts'
import { bytesPerToken, estimateTokens } from './usage.ts'

/** Tokens that an image part is taken for. Source: the usual tile prices of vision models (85 low; 85 + 8 tiles of 170 at most for high). */
export const imageTokens = { low: 85, high: 1445 } as const
/** Tokens that an audio or file part is taken for at least, whose length is not known here. */
export const filePartTokens = 2000
/** The assumed tokens of a file, a recording or a film of which only the address is known. */
export const linkedFileTokens = 10_000
/** Bytes of sound for one token: 128 kbit/s at the 32 tokens a second of the provider that counts most. */
const audioBytesPerToken = 500
/** Longest name, id or setting of a part that says nothing to a model. A longer one counts as text. */
const labelMaxChars = 64
/** Longest address that counts as nothing. */
const addressMaxChars = 2048
/** Bytes that the settings of a call may have together before they count as text. */
const settingsFreeBytes = 1024
/** Sealed thought is base64 of what is encrypted: two of its characters count as one of text. */
const sealedCharsPerChar = 2
/** The beginning of a longer text shows whether it is a data URL. */
const dataUrlHeadMaxChars = 200
const dataUrlHead = /^data:([a-z0-9.+-]*\/?[a-z0-9.+-]*)(?:;[^,;]*)*;base64,/i
/** What is in no base64. */
const noBase64 = /[^A-Za-z0-9+/_=\r\n-]/g
/** Types of files that are text as they are. */
const textType = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|javascript|x-javascript|csv|rtf)|[a-z]+\/[a-z0-9.-]+\+(?:json|xml))/
/** Addresses that end like something else than a picture. */
const fileAddress = /\.(?:pdf|txt|md|csv|json|html?|docx?|xlsx?|pptx?|mp3|wav|m4a|ogg|flac|aac|opus|mp4|mpe?g|mov|webm|avi|mkv|3gp)(?:[?#]|$)/i
const filmAddress = /^https?:\/\/(?:[a-z0-9-]+\.)*(?:youtube\.com|youtu\.be)\//i

/** Media of a prompt, whose tokens only the provider can count. */
export interface PromptMedia {
  readonly images: number
  /** The number of images that are given only by their address: the address may lead to something else. */
  readonly linkedImages: number
  /** Bytes of sound in the request. */
  readonly audioBytes: number
  readonly hasAudio: boolean
  /** There is a file or a film, or sound by its address: nothing but the window of a model bounds its tokens. */
  readonly isOpen: boolean
  /** What of the estimate is for media. */
  readonly tokens: number
}

type Json = Readonly<Record<string, unknown>>

/** Adds up the prompt of one request. */
export class PromptSize {
  hasImages = false
  /** Calls of tools. */
  calls = 0
  #bytes = 0
  #unreadBytes = 0
  #unreadDigits = 0
  #tokens: number
  #images = 0
  #linkedImages = 0
  #audioBytes = 0
  #hasAudio = false
  #isOpen = false
  #mediaTokens = 0

  /** `tokens`: what is around the messages. */
  constructor(tokens: number) {
    this.#tokens = tokens
  }

  /** Tokens of all of it. */
  get estimate(): number {
    return estimateTokens(this.#bytes) + this.#tokens + this.#mediaTokens
  }

  /** The media in it; undefined when it is text alone. */
  get media(): PromptMedia | undefined {
    if (this.#mediaTokens === 0) return undefined
    return {
      images: this.#images,
      linkedImages: this.#linkedImages,
      audioBytes: this.#audioBytes,
      hasAudio: this.#hasAudio,
      isOpen: this.#isOpen,
      tokens: this.#mediaTokens,
    }
  }

  /** What of the estimate a provider may leave unread: thought of earlier turns, settings, members that nobody knows, shapes of replies, tools that may not be called. */
  get unreadTokens(): number {
    return Math.ceil(this.#unreadBytes / bytesPerToken) + this.#unreadDigits
  }

  tokens(count: number): void {
    this.#tokens += count
  }

  /** Digits that are in no value. Many tokenizers make a token of each digit, and nobody knows which of them are in settings. */
  digits(count: number): void {
    this.#tokens += count
    this.#unreadDigits += count
  }

  text(value: string): void {
    this.#bytes += Buffer.byteLength(value)
  }

  /** A value in which everything is text: no media are looked for. */
  json(value: unknown): void {
    if (typeof value === 'string') this.text(value)
    else if (typeof value === 'object' && value !== null) this.text(JSON.stringify(value))
  }

  /**
   * A value whose treatment by the provider is not known. All of it counts as text. Parts that look like media count as media too, and as text that a
   * provider may ignore.
   */
  any(value: unknown): void {
    if (typeof value === 'string') {
      this.text(value)
      if (this.dataUrl(value)) this.#unreadBytes += Buffer.byteLength(value)
    } else if (typeof value === 'object' && value !== null) this.text(JSON.stringify(value, this.#besideText()))
  }

  /** A member beside those that are read: its name counts, too. A translation may drop it. */
  unknown(name: string, value: unknown): void {
    const [before, unreadBefore] = [this.#bytes, this.#unreadBytes]
    this.text(name)
    this.any(value)
    this.#unreadBytes = unreadBefore + this.#bytes - before
  }

  /** The same as `json`, of what a provider may keep out of the prompt: the shape of a reply, and tools that may not be called. */
  unread(value: unknown): void {
    const before = this.#bytes
    this.json(value)
    this.#unreadBytes += this.#bytes - before
  }

  /** A name or a small setting, which says nothing to a model while it is short. */
  label(value: unknown): void {
    if (typeof value === 'string') {
      if (value.length > labelMaxChars) this.text(value)
    } else if (typeof value === 'object' && value !== null) {
      const text = JSON.stringify(value)
      if (text.length > labelMaxChars) this.text(text)
    }
  }

  /** Thought of earlier turns, which some providers leave out of the prompt. */
  thought(value: unknown): void {
    const before = this.#bytes
    this.any(value)
    this.#unreadBytes += this.#bytes - before
  }

  /** Thought that the provider has encrypted. */
  sealed(value: unknown): void {
    const before = this.#bytes
    if (typeof value === 'string') this.#bytes += Math.ceil(Buffer.byteLength(value) / sealedCharsPerChar)
    else this.any(value)
    this.#unreadBytes += this.#bytes - before
  }

  /** Settings of a call: all members of its body that are not read. A few of them are no prompt. */
  settings(body: Json, read: ReadonlySet<string>): void {
    let bytes = 0
    for (const name in body) {
      if (read.has(name)) continue
      bytes += Buffer.byteLength(name)
      const value = body[name]
      if (typeof value === 'string') bytes += Buffer.byteLength(value)
      else if (typeof value === 'object' && value !== null) bytes += Buffer.byteLength(JSON.stringify(value))
    }
    if (bytes <= settingsFreeBytes) return
    this.#bytes += bytes
    this.#unreadBytes += bytes
  }

  /** A picture by its address or as a data URL; what is neither is text. */
  image(url: unknown, detail?: unknown): void {
    if (typeof url === 'string' && this.dataUrl(url, detail)) return
    if (typeof url === 'string' && (fileAddress.test(url.slice(-addressMaxChars)) || filmAddress.test(url))) {
      this.link(url)
      return
    }
    this.#image(detail)
    this.#linkedImages++
    this.#address(url)
  }

  /** Anything by its address. */
  link(url: unknown): void {
    if (typeof url === 'string' && this.dataUrl(url)) return
    this.#file(linkedFileTokens)
    this.#address(url)
  }

  /** Media as a data URL. False: the text is no data URL, and nothing was counted. */
  dataUrl(text: string, detail?: unknown): boolean {
    if (!text.startsWith('data:') && !/^data:/i.test(text.slice(0, 5))) return false
    const head = dataUrlHead.exec(text.slice(0, dataUrlHeadMaxChars))
    if (head === null) return false
    this.payload(head[1] ?? '', text, head[0].length, detail)
    return true
  }

  /** Media of a type, as base64 from a place of the text on; what is no base64 is text. */
  payload(mediaType: string, text: string, from = 0, detail?: unknown): void {
    noBase64.lastIndex = from
    if (noBase64.test(text)) {
      this.text(text)
      return
    }
    const bytes = Math.ceil(((text.length - from) * 3) / 4)
    const type = mediaType.toLowerCase()
    if (type.startsWith('image/')) this.#image(detail)
    else if (type.startsWith('audio/')) this.#audio(bytes)
    else if (textType.test(type)) this.#bytes += bytes
    else this.#file(filePartTokens)
  }

  #image(detail: unknown): void {
    this.#images++
    this.#mediaTokens += detail === 'low' ? imageTokens.low : imageTokens.high
  }

  #audio(bytes: number): void {
    this.#hasAudio = true
    this.#audioBytes += bytes
    this.#mediaTokens += Math.max(filePartTokens, Math.ceil(bytes / audioBytesPerToken))
  }

  #file(tokens: number): void {
    this.#isOpen = true
    this.#mediaTokens += tokens
  }

  #address(url: unknown): void {
    if (typeof url !== 'string') this.any(url)
    else if (url.length > addressMaxChars) this.text(url)
  }

  /** Counts what looks like media and leaves the value as it is. */
  #besideText(): (this: unknown, key: string, value: unknown) => unknown {
    const size = this
    return function counted(key, value) {
      if (typeof value !== 'string') return value
      const type = key === 'data' && isObject(this) ? (this['media_type'] ?? this['mime_type'] ?? this['mimeType']) : undefined
      if (size.dataUrl(value)) size.#unreadBytes += Buffer.byteLength(value)
      else if (typeof type === 'string' && type.length <= labelMaxChars) {
        size.payload(type, value)
        size.#unreadBytes += Buffer.byteLength(value)
      }
      return value
    }
  }
}
