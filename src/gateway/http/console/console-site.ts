/**
 * Serves people with a browser: the web console at /console, and pages at `/` and /mcp that say what is here. None of them is an operation of the API, so they
 * are not rows of the endpoint table. A program that does not ask for HTML gets the same answers as without them. Decision 0630 says why.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Reply, reply } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { namesEtag } from '../../../platform/public-page.ts'
import { consoleMissingPage, consoleOffPage, mcpPage, startPage } from '../../access/pages/address-pages.ts'
import { skipBody } from '../bodies/pieces.ts'
import type { EdgeDeps } from '../edge.ts'
import { writeError, writeReply } from '../replies/reply-writer.ts'
import { checkoutPage, checkoutPath, checkoutScript, checkoutScriptPath } from './checkout-page.ts'
import { builtConsole, type ConsoleFile, type ConsoleFiles, readConsole, variantFor } from './console-files.ts'

/** The paths of the console. A page of the console is any path below that is not an asset. */
const consolePath = '/console'
const assetsPath = '/console/assets/'

/** Headers of every reply of the console. Nothing of another origin runs, loads, frames the console or reads from it. */
const guardHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "font-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  // A form needs an Origin to be accepted, which browsers leave out under `no-referrer`.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=(), interest-cohort=()',
} as const

/** A name of an asset changes with its content, so no copy of it can be out of date. */
const immutable = 'public, max-age=31536000, immutable'

export interface ConsoleSiteOptions {
  /** The setting CONSOLE. */
  readonly isOn: boolean
  /** The folder of the built console. */
  readonly folder?: string
}

export class ConsoleSite {
  readonly #isOn: boolean
  readonly #files: ConsoleFiles | null

  constructor({ isOn, folder = builtConsole }: ConsoleSiteOptions) {
    this.#isOn = isOn
    this.#files = isOn ? readConsole(folder) : null
  }

  /** Serves a request for `/` or a path of the console. Returns false when the request is not from a browser and gets the reply of an unknown path. */
  serve(path: string, request: IncomingMessage, response: ServerResponse, deps: EdgeDeps): boolean {
    const answer = (make: () => Reply): true => this.#answer(make, request, response, deps)
    if (path.startsWith(assetsPath) && this.#isOn) return answer(() => this.#asset(path.slice(assetsPath.length), request))
    if (path === checkoutScriptPath && this.#isOn && isRead(request)) return answer(checkoutScript)
    if (!wantsPage(request)) return false
    if (!isRead(request)) return answer(refuseMethod)
    if (path === '/') return answer(() => (this.#isOn ? reply.redirect(consolePath, uncached) : startPage()))
    if (!this.#isOn) return answer(consoleOffPage)
    if (path === checkoutPath) return answer(() => checkoutPage(new URL(request.url ?? '/', 'http://gateway').searchParams, deps.baseUrl()))
    const files = this.#files
    return answer(() =>
      files === null ? consoleMissingPage() : fileReply(files.page, request, { 'cache-control': 'no-cache', vary: 'accept, accept-encoding' }),
    )
  }

  /** Serves a browser that opens /mcp. Returns false for the clients of MCP. */
  explainMcp(request: IncomingMessage, response: ServerResponse, deps: EdgeDeps): boolean {
    return request.method === 'GET' && wantsPage(request) && this.#answer(() => mcpPage(deps.baseUrl(), this.#isOn), request, response, deps)
  }

  #asset(name: string, request: IncomingMessage): Reply {
    if (!isRead(request)) return refuseMethod()
    const file = this.#files?.assets.get(name)
    if (file === undefined) throw fail('not_found', { message: 'The console has no such file. Load the page again.' })
    return fileReply(file, request, { 'cache-control': immutable, vary: 'accept-encoding' })
  }

  #answer(make: () => Reply, request: IncomingMessage, response: ServerResponse, deps: EdgeDeps): true {
    skipBody(request)
    const requestId = deps.ids.requestId()
    try {
      const noPlace = deps.connections.admit(request, null)
      if (noPlace !== null) throw noPlace
      const made = make()
      void writeReply(response, made, made.status, { requestId, orgId: null }, deps)
    } catch (error) {
      response.setHeader('x-request-id', requestId)
      deps.watch?.refused(writeError(response, error).code)
    }
    return true
  }
}

const uncached = { 'cache-control': 'no-store', vary: 'accept' }

/** Returns whether the request comes from the address bar or a link of a browser. */
const wantsPage = ({ headers }: IncomingMessage): boolean => headers.accept?.includes('text/html') === true

const isRead = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD'

function refuseMethod(): never {
  throw fail('method_not_allowed', { message: 'This path takes GET only.', headers: { allow: 'GET, HEAD' } })
}

function fileReply(file: ConsoleFile, { headers }: IncomingMessage, more: Readonly<Record<string, string>>): Reply {
  const { bytes, etag, encoding } = variantFor(file, headers['accept-encoding']?.toString())
  const all = { ...guardHeaders, ...more, etag }
  if (namesEtag(headers['if-none-match'], etag)) return reply.empty(304, all)
  return reply.bytes(bytes, { ...all, 'content-type': file.contentType, ...(encoding === null ? {} : { 'content-encoding': encoding }) })
}
