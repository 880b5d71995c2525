import type { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker'
import { LRUCache } from 'lru-cache'
import type { RE2JS } from 're2js'
import type { Clock } from '../../../platform/clock.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { isTooDeep } from '../json-bounds.ts'
import type { CallableTool } from '../registry/callable-tool.ts'
import { isObject, patternFault, runnableSchema, UncheckableSchemaError } from './argument-schema.ts'

/** Maximum size of the arguments of a call, as JSON. */
const argumentsMaxBytes = 1024 * 1024
/** Maximum nesting of the arguments. */
const argumentsMaxDepth = 64
/** Subschemas that one check visits at most. The largest real schemas need a few thousand. */
const stepsMax = 100_000
/** Longest time of one check. A visit of a subschema can take as long as the arguments and the subschema are, and other calls wait meanwhile. */
const checkMaxMs = 200
/** Schemas that are kept ready to run. */
const schemasMax = 2000
/** Maximum length of the description of a fault. It names places of the arguments, and repeats values of the schema. */
const faultMaxChars = 500

interface ReadySchema {
  /** Returns the fault of arguments, or null. Throws UncheckableSchemaError when the check takes too long. */
  faultOf(args: unknown): string | null
}

/**
 * Checks arguments against the approved schemas of tools. It runs no code of a schema, and each check ends after a bounded number of steps and a bounded time.
 * Decisions 0790 and 0848 give the reasons.
 */
export class ToolArguments {
  readonly #ready = new LRUCache<string, ReadySchema>({ max: schemasMax })
  readonly #clock: Pick<Clock, 'monotonicMs'>
  #validators: Promise<CfWorkerJsonSchemaValidator> | null = null

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Throws `bad_request` for arguments that are too large, too deep or not as the schema says. Throws `tool_server_failed` for a schema that cannot be checked. */
  async check(tool: CallableTool, args: Readonly<Record<string, unknown>>): Promise<void> {
    if (isTooDeep(args, argumentsMaxDepth)) throw refused(`they have more than ${argumentsMaxDepth} levels`)
    const bytes = Buffer.byteLength(JSON.stringify(args))
    if (bytes > argumentsMaxBytes) throw refused(`they have ${bytes} bytes, and at most ${argumentsMaxBytes} are accepted`)
    try {
      const ready = this.#ready.get(tool.hash) ?? (await this.#prepare(tool))
      const fault = ready.faultOf(args)
      if (fault !== null) throw refused(fault.slice(0, faultMaxChars))
    } catch (error) {
      if (!(error instanceof UncheckableSchemaError) && !(error instanceof RangeError) && !isUnresolved(error)) throw error
      throw fail('tool_server_failed', { message: 'The schema of this tool cannot be checked, so it cannot be called. An admin can read it at the server.' })
    }
  }

  async #prepare(tool: CallableTool): Promise<ReadySchema> {
    this.#validators ??= import('@modelcontextprotocol/client/validators/cf-worker').then(found => new found.CfWorkerJsonSchemaValidator())
    const validators = await this.#validators
    let steps = 0
    let endMs = 0
    const step = (): void => {
      if (++steps > stepsMax) throw new UncheckableSchemaError('the check takes too many steps')
      if (this.#clock.monotonicMs() > endMs) throw new UncheckableSchemaError('the check takes too long')
    }
    const given = tool.definition['inputSchema']
    const schema = isObject(given) ? given : { type: 'object' }
    const validate = validators.getValidator<unknown>(runnableSchema(schema, step) as Parameters<CfWorkerJsonSchemaValidator['getValidator']>[0])
    const patterns = new Map<string, RE2JS | null>()
    const ready: ReadySchema = {
      faultOf: args => {
        steps = 0
        endMs = this.#clock.monotonicMs() + checkMaxMs
        const { valid, errorMessage } = validate(args)
        if (!valid) return errorMessage ?? 'they do not match the schema'
        const place = patternFault(schema, args, { known: patterns, step })
        return place === null ? null : `${place}: the text does not match its pattern`
      },
    }
    this.#ready.set(tool.hash, ready)
    return ready
  }
}

/** The checker throws plain errors for references without a target and for unknown dialects. */
const isUnresolved = (error: unknown): boolean => error instanceof Error && error.constructor === Error

const refused = (why: string): GatewayError => fail('bad_request', { message: `The arguments of this tool are not accepted: ${why}.` })
