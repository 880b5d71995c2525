/** Tools over test rows: an echo, a tool that fails on request, a tool for full keys, a tool that waits for an abort, and chat over a scripted stream. */
import { z } from 'zod'
import { chatTool } from '../../src/mcp/tools/chat/tool-chat.ts'
import { jsonOf, rowTool, type Tool } from '../../src/mcp/tools/toolbox/tool.ts'
import { endpointOf, reply } from '../../src/platform/endpoint.ts'
import { type ErrorName, errorTable, fail } from '../../src/platform/errors.ts'
import { abortSignalOf } from '../../src/platform/loop/cancellation.ts'
import type { StreamPump } from '../../src/platform/loop/stream-sink.ts'

const row = endpointOf<object>()
const annotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

/** What the rows have received. */
export interface Seen {
  labels: (string | null)[]
  started: number
  aborted: unknown[]
}

export function sampleTools(seen: Seen, chunks: (signal: AbortSignal) => AsyncIterable<Uint8Array> = () => streamOf([])): Tool[] {
  const echoRow = row({
    at: 'POST /echo',
    auth: 'key',
    access: {},
    tag: 't',
    summary: 's',
    input: { body: z.object({ say: z.string() }) },
    output: z.object({}),
    errors: [],
    handle: (_s, { body }, call) => {
      seen.labels.push(call.agentLabel)
      return { said: body.say, kind: call.principal.kind }
    },
  })
  const failRow = row({
    at: 'POST /fail',
    auth: 'key',
    access: {},
    tag: 't',
    summary: 's',
    input: { body: z.object({ name: z.string() }) },
    output: z.object({}),
    errors: [],
    handle: (_s, { body }) => {
      if (body.name === 'surprise') throw new Error('a secret of the inside')
      throw fail(body.name as ErrorName, body.name === 'agent_budget_exceeded' ? { extra: { scope: 'agent', cap_inr: 10, spent_inr: 10 } } : {})
    },
  })
  const fullRow = row({
    at: 'POST /full',
    auth: 'key',
    access: { scope: 'full' },
    tag: 't',
    summary: 's',
    input: {},
    output: z.object({}),
    errors: [],
    handle: () => ({}),
  })
  const waitRow = row({
    at: 'POST /wait',
    auth: 'key',
    access: {},
    tag: 't',
    summary: 's',
    input: {},
    output: z.object({}),
    errors: [],
    handle: (_s, _i, call) =>
      new Promise((_resolve, reject) => {
        seen.started++
        call.signal.addEventListener('abort', () => {
          seen.aborted.push(call.signal.reason)
          reject(call.signal.reason)
        })
      }),
  })
  const chatRow = row({
    at: 'POST /v1/chat/completions',
    auth: 'key',
    access: {},
    tag: 't',
    summary: 's',
    input: { bodyKind: 'inference' },
    output: z.object({}),
    errors: [],
    handle: (_s, _i, call) => {
      seen.started++
      return reply.stream(pumpOf(watch(chunks(abortSignalOf(call.signal)), seen, abortSignalOf(call.signal))), {
        'content-type': 'text/event-stream',
        'x-br-provider': 'test-provider',
      })
    },
  })
  const said = z.object({ said: z.string(), kind: z.string() })
  return [
    rowTool({
      name: 'wait',
      toolset: 'core',
      title: 'Wait',
      description: 'Waits.',
      annotations,
      row: waitRow,
      inputSchema: z.object({}),
      outputSchema: z.object({}),
      toInput: () => ({}),
      toResult: () => ({ text: '', structured: {} }),
    }),
    rowTool({
      name: 'echo',
      toolset: 'core',
      title: 'Echo',
      description: 'Says it again.',
      annotations,
      row: echoRow,
      inputSchema: z.object({ say: z.string() }),
      outputSchema: said,
      toInput: body => ({ body }),
      toResult: value => {
        const structured = said.parse(jsonOf(value))
        return { text: structured.said, structured }
      },
    }),
    rowTool({
      name: 'fail',
      toolset: 'core',
      title: 'Fail',
      description: 'Fails.',
      annotations,
      row: failRow,
      inputSchema: z.object({ name: z.enum(['surprise', ...(Object.keys(errorTable) as [ErrorName, ...ErrorName[]])]) }),
      outputSchema: said,
      toInput: body => ({ body }),
      toResult: () => ({ text: '', structured: {} }),
    }),
    rowTool({
      name: 'admin',
      toolset: 'core',
      title: 'Admin',
      description: 'For full keys.',
      annotations,
      row: fullRow,
      inputSchema: z.object({}),
      outputSchema: z.object({}),
      toInput: () => ({}),
      toResult: () => ({ text: '', structured: {} }),
    }),
    chatTool(chatRow),
  ]
}

/** Yields the frames of a chat stream as bytes, one chunk for each frame. */
export async function* streamOf(frames: readonly object[]): AsyncGenerator<Uint8Array> {
  for (const frame of frames) yield Buffer.from(`data: ${JSON.stringify(frame)}\n\n`)
  yield Buffer.from('data: [DONE]\n\n')
}

const pumpOf =
  (chunks: AsyncIterable<Uint8Array>): StreamPump =>
  async sink => {
    for await (const chunk of chunks) {
      if (!sink.push(chunk)) await sink.room()
      if (sink.isGone) return
    }
  }

async function* watch(chunks: AsyncIterable<Uint8Array>, seen: Seen, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } finally {
    if (signal.aborted) seen.aborted.push(signal.reason)
  }
}

/** Waits until a condition holds, at most 5 s. */
export async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    if (tries > 500) throw new Error('the condition did not come true in 5 s')
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
