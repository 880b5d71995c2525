/**
 * One line on the terminal of a person for each request. The lines come from the events that metrics count, after the reply was sent. They contain names that the
 * gateway already has in memory, and no content, no query and no text of a path that is no word of the endpoint table. Decision 0755 gives the reasons.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { LRUCache } from 'lru-cache'
import type { EdgeWatch, EndedRequest } from '../../gateway/http/edge-watch.ts'
import type { CallWatch } from '../../gateway/inference/call-watch.ts'
import type { UsageEvent } from '../../gateway/usage/events/record.ts'
import type { ToolWatch } from '../../mcp/tools/toolbox/tool-watch.ts'
import type { Clock } from '../../platform/clock.ts'
import { plainShort } from '../../platform/observe/terminal/plain-text.ts'
import { durationText } from '../../platform/observe/terminal/progress.ts'
import type { Style, Terminal } from '../../platform/observe/terminal/terminal.ts'
import { timeText } from '../../platform/observe/terminal/terminal-log.ts'
import type { Principal } from '../../platform/security/principal.ts'

/** What is known of a request before its reply ends. */
interface Note {
  model?: string
  provider?: string
  code?: string
  tools?: string
  principal?: Principal
}

/** Requests of which something is known and whose reply has not ended. */
const notesMax = 2_000
const nameMaxChars = 40
const pathMaxSegments = 8

export interface RequestLinesOptions {
  readonly terminal: Terminal
  readonly clock: Clock
  /** The addresses of the endpoint table. Only their words are shown of a path that is not in it. */
  readonly addresses: readonly string[]
  /** True: probes and the reads of the console are shown too. */
  readonly showsAll: boolean
}

export class RequestLines {
  readonly #options: RequestLinesOptions
  readonly #words: ReadonlySet<string>
  readonly #notes = new LRUCache<string, Note>({ max: notesMax })

  constructor(options: RequestLinesOptions) {
    this.#options = options
    const paths = options.addresses.map(address => address.split(' ')[1] ?? '')
    this.#words = new Set([...paths.flatMap(path => path.split('/')).filter(word => !word.includes('{')), 'mcp', 'orgs'])
  }

  settled({ requestId, model, provider }: UsageEvent): void {
    Object.assign(this.#noteOf(requestId), { model, provider })
  }

  /** Notes the tool of an MCP request, and who calls it. A request with several tools shows all of their names. */
  called(tool: string, { requestId, principal }: Parameters<ToolWatch['begin']>[1]): void {
    const note = this.#noteOf(requestId)
    note.tools = note.tools === undefined ? tool : `${note.tools}, ${tool}`
    note.principal = principal
  }

  refused(code: string, requestId: string | undefined): void {
    if (requestId !== undefined) this.#noteOf(requestId).code = code
  }

  ended(at: string, tookMs: number, status: number | null, { requestId, principal, isProbe }: EndedRequest): void {
    const note = this.#taken(requestId)
    const isReadByConsole = principal?.kind === 'session' && at.startsWith('GET ') && status !== null && status < 400
    if (!this.#options.showsAll && (isProbe || isReadByConsole)) return
    this.#print(at, tookMs, status, note, principal)
  }

  /** Shows a request outside of the endpoint table when its reply has ended. */
  strayed(path: '/mcp' | 'other', request: IncomingMessage, response: ServerResponse): void {
    const begunAt = this.#options.clock.monotonicMs()
    response.once('close', () => {
      const header = response.getHeader('x-request-id')
      const note = typeof header === 'string' ? this.#taken(header) : {}
      const status = response.headersSent ? response.statusCode : null
      // These are pages and files of the console.
      if (path === 'other' && status !== null && status < 400 && !this.#options.showsAll) return
      const shown = path === '/mcp' ? path : this.#shownPath(request.url ?? '')
      this.#print(`${methodOf(request)} ${shown}`, this.#options.clock.monotonicMs() - begunAt, status, note, note.principal ?? null)
    })
  }

  #print(at: string, tookMs: number, status: number | null, { model, provider, code, tools }: Note, principal: Principal | null): void {
    const { terminal, clock } = this.#options
    const { paint } = terminal
    const short = (name: string): string => plainShort(name, nameMaxChars)
    const parts = [
      paint('dim', timeText(clock.nowMs())),
      paint(styleOf(status), status === null ? 'gone' : String(status)),
      at,
      ...(tools === undefined ? [] : [short(tools)]),
      ...(model === undefined ? [] : [`${short(model)}${provider === undefined || provider === '' ? '' : paint('dim', ` by ${short(provider)}`)}`]),
      ...(code === undefined ? [] : [paint(styleOf(status), short(code))]),
      ...callerOf(principal),
      paint('dim', durationText(tookMs)),
    ]
    terminal.lines(parts.join('  '))
  }

  #noteOf(requestId: string): Note {
    const found = this.#notes.get(requestId)
    if (found !== undefined) return found
    const made: Note = {}
    this.#notes.set(requestId, made)
    return made
  }

  #taken(requestId: string): Note {
    const note = this.#notes.get(requestId)
    if (note === undefined) return {}
    this.#notes.delete(requestId)
    return note
  }

  /** Returns the path with `…` in place of every part that is no word of the endpoint table, because it may be a name, a key or content. */
  #shownPath(url: string): string {
    const segments = (url.split('?', 1)[0] ?? '').slice(0, 500).split('/').slice(1)
    const shown = segments.slice(0, pathMaxSegments).map(segment => (this.#words.has(segment) ? segment : '…'))
    return `/${shown.join('/')}`
  }
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const methodOf = ({ method = '' }: IncomingMessage): string => (methods.has(method) ? method : '…')

function styleOf(status: number | null): Style {
  if (status === null || status >= 500) return 'red'
  return status >= 400 ? 'yellow' : 'green'
}

function callerOf(principal: Principal | null): string[] {
  switch (principal?.kind) {
    case 'agent':
      return [`agent ${plainShort(principal.agentName, nameMaxChars)}`]
    case 'key':
      return [`key ${plainShort(principal.keyName, nameMaxChars)}`]
    case 'session':
      return ['console']
    case undefined:
      return []
  }
}

/** Returns a watch that counts with `counts`, if there is one, and shows lines. */
export function edgeWatchWithLines(counts: EdgeWatch | undefined, lines: RequestLines, clock: Clock): EdgeWatch {
  return {
    begun: () => counts?.begun() ?? clock.monotonicMs(),
    ended(address, begunAt, status, request) {
      counts?.ended(address, begunAt, status, request)
      lines.ended(address.at, clock.monotonicMs() - begunAt, status, request)
    },
    strayed(path, request, response) {
      counts?.strayed(path, request, response)
      lines.strayed(path, request, response)
    },
    refused(code, requestId) {
      counts?.refused(code, requestId)
      lines.refused(code, requestId)
    },
  }
}

/** Returns a watch of calls that counts with `counts`, if there is one, and notes the model for the line of the request. */
export function callWatchWithLines(counts: CallWatch | undefined, lines: RequestLines): CallWatch {
  return {
    settled(event) {
      counts?.settled(event)
      lines.settled(event)
    },
    routeFailed: (attempt, reason) => counts?.routeFailed(attempt, reason),
    usageDoubted: (attempt, doubt) => counts?.usageDoubted(attempt, doubt),
  }
}

/** Returns a watch of tools that notes the tool for the line of the request. */
export function toolWatchWithLines(watch: ToolWatch | undefined, lines: RequestLines): ToolWatch {
  return {
    begin(tool, call) {
      lines.called(tool, call)
      return watch?.begin(tool, call) ?? { below: {}, end() {} }
    },
  }
}
