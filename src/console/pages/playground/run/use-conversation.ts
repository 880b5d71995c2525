import { useCallback, useEffect, useReducer, useRef } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { bodyOf, conversation, type Settings, type Turn } from './conversation.ts'
import { type ChatBody, type ChatEvent, streamChat } from './stream-chat.ts'
import { playgroundToken } from './token.ts'

/** Pieces of an answer are drawn this often, however fast they come. */
const drawMs = 40

interface Conversation {
  readonly turns: readonly Turn[]
  readonly isRunning: boolean
  /** Sends a message to one or two models. */
  ask(prompt: string, models: readonly string[], settings: Settings): void
  /** Ends the running answers. What was written of them stays. */
  stop(): void
  clear(): void
}

/** The conversation of the page. It ends with the page, and with it every call that runs. */
export function useConversation(): Conversation {
  const [turns, dispatch] = useReducer(conversation, [])
  const running = useRef<AbortController>(undefined)
  const nextId = useRef(1)
  useEffect(() => () => running.current?.abort(), [])
  const stop = useCallback(() => running.current?.abort(), [])
  const clear = useCallback(() => {
    running.current?.abort()
    dispatch({ kind: 'clear' })
  }, [])
  const run = async (id: number, column: number, body: ChatBody, signal: AbortSignal): Promise<void> => {
    let startMs = performance.now()
    const atMs = (): number => Math.round(performance.now() - startMs)
    let events: ChatEvent[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    const draw = (): void => {
      clearTimeout(timer)
      timer = undefined
      if (events.length > 0) dispatch({ kind: 'heard', id, column, events, atMs: atMs() })
      events = []
    }
    try {
      // The first call of the page gets a token. Its time is not that of the call.
      await playgroundToken()
      startMs = performance.now()
      for await (const event of streamChat(body, signal)) {
        events.push(event)
        timer ??= setTimeout(draw, drawMs)
      }
      draw()
      dispatch({ kind: 'ended', id, column, state: 'done', error: null, atMs: atMs() })
    } catch (error) {
      draw()
      const isStopped = signal.aborted
      dispatch({ kind: 'ended', id, column, state: isStopped ? 'stopped' : 'failed', error: isStopped ? null : apiErrorOf(error), atMs: atMs() })
    }
  }
  return {
    turns,
    isRunning: turns.at(-1)?.answers.some(({ state }) => state === 'running') ?? false,
    ask(prompt, models, settings) {
      const id = nextId.current++
      const bodies = models.map((model, column) => bodyOf(turns, column, model, prompt, settings))
      const controller = new AbortController()
      running.current = controller
      dispatch({ kind: 'ask', id, prompt, bodies })
      for (const [column, body] of bodies.entries()) void run(id, column, body, controller.signal)
    },
    stop,
    clear,
  }
}
