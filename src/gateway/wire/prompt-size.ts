/**
 * Estimates the size of a prompt before its provider has counted it. Every text of a body counts, under any name, because the gateway cannot know which
 * fields a provider reads as prompt. Each piece of media counts as an assumed number of tokens. Decision 0416 gives the reasons.
 */
import { digitsOf } from '../../platform/values/digits.ts'
import { isObject } from '../../platform/values/json.ts'
import { digitExtraBytes } from './output-chars.ts'
import { bytesPerToken, estimateTokens } from './usage.ts'

/** The assumed tokens of an image part. Source: the usual tile prices of vision models (low: 85; high: at most 85 + 8 tiles of 170). */
export const imageTokens = { low: 85, high: 1445 } as const
/** The minimum number of tokens that is assumed for an audio or file part, because its length is not known here. */
export const filePartTokens = 2000
/** The assumed tokens of a file, a recording or a film that is given only by its address. */
export const linkedFileTokens = 10_000
/** Bytes of sound for one token. This is 128 kbit/s at 32 tokens a second, the rate of the provider that counts the most tokens. */
const audioBytesPerToken = 500
/** A name, id or setting of a part with at most this many characters does not count. A longer one counts as text. */
const labelMaxChars = 64
/** An address with at most this many characters does not count as text. */
const addressMaxChars = 2048
/** The settings of a call do not count until they have more than this number of bytes together. */
const settingsFreeBytes = 1024
/** Encrypted thinking is in base64. Two of its characters count as one character of text. */
const sealedCharsPerChar = 2
/**
 * Digits of a text count only after this number of bytes of the prompt, so that ordinary prompts need no second pass. What they leave out is less than 1,400
 * tokens.
 */
const digitsFromBytes = 2048
/** Only this many characters of a text are examined to see whether it is a data URL. */
const dataUrlHeadMaxChars = 200
const dataUrlHead = /^data:([a-z0-9.+-]*\/?[a-z0-9.+-]*)(?:;[^,;]*)*;base64,/i
const anyDataUrl = /^\s*data:/i
const imageDataUrl = /^\s*data:image\//i
/** The base64 of the first bytes of a PDF, of a ZIP file (as of Office), and of the older Office formats. */
const fileBytes = /^\s*(?:JVBERi|UEsDB|0M8R4K)/
const fileHeadMaxChars = 200
/** Base64 of at least this many characters is counted without being written as JSON. */
const longBase64Chars = 4096
/** The quotes around a string in JSON. */
const quotesChars = 2
/** Characters that base64 does not have. */
const noBase64 = /[^A-Za-z0-9+/_=\r\n-]/g
/** File types whose bytes are text. */
const textType = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|javascript|x-javascript|csv|rtf)|[a-z]+\/[a-z0-9.-]+\+(?:json|xml))/
/** Addresses that end like something other than a picture. */
const fileAddress = /\.(?:pdf|txt|md|csv|json|html?|docx?|xlsx?|pptx?|mp3|wav|m4a|ogg|flac|aac|opus|mp4|mpe?g|mov|webm|avi|mkv|3gp)(?:[?#]|$)/i
const filmAddress = /^https?:\/\/(?:[a-z0-9-]+\.)*(?:youtube\.com|youtu\.be)\//i

/** The media of a prompt. The gateway can only estimate their tokens. */
export interface PromptMedia {
  readonly images: number
  /** The number of images that are given only by their address. The address may lead to something other than an image. */
  readonly linkedImages: number
  /** Bytes of sound in the request. */
  readonly audioBytes: number
  readonly hasAudio: boolean
  /** True for a file, a film, or sound by its address. Only the model's context window bounds their tokens. */
  readonly isOpen: boolean
  /** True for anything that a provider may read as a file, also when it counts as text. */
  readonly hasFile: boolean
  /** The part of the estimate that is for media. */
  readonly tokens: number
}

type Json = Readonly<Record<string, unknown>>

/** Adds up the prompt of one request. */
export class PromptSize {
  hasImages = false
  /** The number of tool calls. */
  calls = 0
  #bytes = 0
  #unreadBytes = 0
  #unreadDigits = 0
  #spokenDigits = 0
  #tokens: number
  #images = 0
  #linkedImages = 0
  #audioBytes = 0
  #hasAudio = false
  #isOpen = false
  #hasFile = false
  #mediaTokens = 0

  /** `tokens` is the assumed number of tokens around the messages, for roles and separators. */
  constructor(tokens: number) {
    this.#tokens = tokens
  }

  /** The estimated tokens of the whole prompt. */
  get estimate(): number {
    return estimateTokens(this.#bytes) + this.digitTokens + this.#tokens + this.#mediaTokens
  }

  /**
   * The part of the estimate that only tokenizers with a token for each digit count. Other tokenizers join up to three digits. Decision 0672 gives the reasons.
   */
  get digitTokens(): number {
    return estimateTokens(this.#spokenDigits * digitExtraBytes)
  }

  /** The media of the prompt; undefined if it is only text. A file of text has no tokens of media. */
  get media(): PromptMedia | undefined {
    if (this.#mediaTokens === 0 && !this.#hasFile) return undefined
    return {
      images: this.#images,
      linkedImages: this.#linkedImages,
      audioBytes: this.#audioBytes,
      hasAudio: this.#hasAudio,
      isOpen: this.#isOpen,
      hasFile: this.#hasFile,
      tokens: this.#mediaTokens,
    }
  }

  /**
   * The part of the estimate that a provider may not count: thinking of earlier turns, settings, unknown members, schemas of replies, tools that may not be
   * called, and what digits count beyond their bytes.
   */
  get unreadTokens(): number {
    return Math.ceil(this.#unreadBytes / bytesPerToken) + this.#unreadDigits + this.digitTokens
  }

  tokens(count: number): void {
    this.#tokens += count
  }

  /**
   * Adds the digits that long numbers have lost in the values. Each counts as one token, because many tokenizers make a token of each digit. All of them
   * count as possibly unread, because they may be in settings.
   */
  digits(count: number): void {
    this.#tokens += count
    this.#unreadDigits += count
  }

  text(value: string): void {
    this.#bytes += Buffer.byteLength(value)
    if (this.#bytes > digitsFromBytes) this.#spokenDigits += digitsOf(value)
  }

  /** Adds a value as text. Media inside the value also count as text. */
  json(value: unknown): void {
    if (typeof value === 'string') this.text(value)
    else if (typeof value === 'object' && value !== null) this.text(JSON.stringify(value))
  }

  /**
   * Adds a value of which the gateway does not know how the provider treats it. The whole value counts as text. Parts that look like media also count as
   * media, and their text then counts as possibly unread.
   */
  any(value: unknown): void {
    if (typeof value === 'string') {
      this.text(value)
      if (this.dataUrl(value)) this.#unreadBytes += Buffer.byteLength(value)
    } else if (typeof value === 'object' && value !== null) this.text(JSON.stringify(value, this.#besideText()))
  }

  /** Adds an unknown member, including its name. It counts as possibly unread, because a translation may drop it. */
  unknown(name: string, value: unknown): void {
    const [before, unreadBefore] = [this.#bytes, this.#unreadBytes]
    this.text(name)
    this.any(value)
    this.#unreadBytes = unreadBefore + this.#bytes - before
  }

  /** Adds a value like `json`, but counts it as possibly unread: the schema of a reply, or tools that may not be called. */
  unread(value: unknown): void {
    const before = this.#bytes
    this.json(value)
    this.#unreadBytes += this.#bytes - before
  }

  /** Adds a name or a small setting. A short one does not count, because it adds almost nothing to a prompt. */
  label(value: unknown): void {
    if (typeof value === 'string') {
      if (value.length > labelMaxChars) this.text(value)
    } else if (typeof value === 'object' && value !== null) {
      const text = JSON.stringify(value)
      if (text.length > labelMaxChars) this.text(text)
    }
  }

  /** Adds thinking of earlier turns. Some providers leave it out of the prompt. */
  thought(value: unknown): void {
    const before = this.#bytes
    this.any(value)
    this.#unreadBytes += this.#bytes - before
  }

  /** Adds thinking that the provider has encrypted. */
  sealed(value: unknown): void {
    const before = this.#bytes
    if (typeof value === 'string') this.#bytes += Math.ceil(Buffer.byteLength(value) / sealedCharsPerChar)
    else this.any(value)
    this.#unreadBytes += this.#bytes - before
  }

  /** Adds the settings of a call: all members of its body that are not in `read`. Short settings do not count. */
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

  /**
   * Adds a picture that is an address or a data URL. An address of a file or a video counts as a link. A value that is not a string counts as a picture and
   * as text.
   */
  image(url: unknown, detail?: unknown): void {
    if (typeof url === 'string' && this.dataUrl(url, detail)) return
    if (typeof url === 'string' && (fileAddress.test(url.slice(-addressMaxChars)) || filmAddress.test(url))) {
      this.link(url)
      return
    }
    // A data URL that is not base64, or that the gateway cannot read, has its content in the address.
    if (typeof url === 'string' && anyDataUrl.test(url) && !imageDataUrl.test(url)) this.#hasFile = true
    this.#image(detail)
    this.#linkedImages++
    this.#address(url)
  }

  /** Adds something that is given by its address. */
  link(url: unknown): void {
    if (typeof url === 'string' && this.dataUrl(url)) return
    this.#file(linkedFileTokens)
    this.#address(url)
  }

  /** Adds media in a data URL. Returns false, and adds nothing, if the text is not a data URL. */
  dataUrl(text: string, detail?: unknown): boolean {
    if (!text.startsWith('data:') && !/^data:/i.test(text.slice(0, 5))) return false
    const head = dataUrlHead.exec(text.slice(0, dataUrlHeadMaxChars))
    if (head === null) return false
    this.payload(head[1] ?? '', text, head[0].length, detail)
    return true
  }

  /** Adds media of the given type. The base64 begins at offset `from` of the text. A text that is not base64 counts as text. */
  payload(mediaType: string, text: string, from = 0, detail?: unknown): void {
    const type = mediaType.toLowerCase()
    // The provider decides by the bytes what it reads, whatever their type says.
    const isFile = fileBytes.test(text.slice(from, from + fileHeadMaxChars))
    if (isFile || !/^(?:image|audio)\//.test(type)) this.#hasFile = true
    noBase64.lastIndex = from
    if (noBase64.test(text)) {
      this.text(text)
      return
    }
    const bytes = Math.ceil(((text.length - from) * 3) / 4)
    if (isFile) this.#file(filePartTokens)
    else if (type.startsWith('image/')) this.#image(detail)
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
    this.#hasFile = true
    this.#mediaTokens += tokens
  }

  #address(url: unknown): void {
    if (typeof url !== 'string') this.any(url)
    else if (url.length > addressMaxChars) this.text(url)
  }

  /** Returns a replacer for JSON.stringify that counts the parts that look like media. It changes no value but long base64, which it counts itself. */
  #besideText(): (this: unknown, key: string, value: unknown) => unknown {
    const size = this
    return function counted(key, value) {
      if (typeof value !== 'string') return value
      const type = key === 'data' && isObject(this) ? (this['media_type'] ?? this['mime_type'] ?? this['mimeType']) : undefined
      const before = size.#bytes
      if (!size.dataUrl(value)) {
        if (typeof type !== 'string' || type.length > labelMaxChars) return value
        size.payload(type, value)
      }
      const bytes = Buffer.byteLength(value)
      size.#unreadBytes += bytes
      // What is not base64 was counted as text, with all of its bytes.
      const isText = size.#bytes - before >= bytes
      if (isText || value.length < longBase64Chars || value.includes('\n') || value.includes('\r')) return value
      // The JSON of base64 is as long as the base64. To write 28 MB of pictures as JSON takes about 80 ms.
      size.#bytes += Buffer.byteLength(JSON.stringify(value.slice(0, dataUrlHeadMaxChars))) + value.length - dataUrlHeadMaxChars - quotesChars
      return ''
    }
  }
}
