/** One stream of hints for all tabs of a browser. Decision 0701 says why. */
import { HintSource } from './hint-source.ts'
import { follow } from './refresher.ts'
import { streamState } from './stream-state.ts'

type Message = { readonly kind: 'topic'; readonly topic: string } | { readonly kind: 'state'; readonly isOpen: boolean } | { readonly kind: 'asks' }

const name = 'brigade-hints'

/** Follows hints until the returned function is called. One tab at a time has the stream, and the others receive what it receives. */
export function followHints(): () => void {
  // Without a secure context, a browser has no locks.
  return 'locks' in navigator ? followShared() : followWhileVisible()
}

function followShared(): () => void {
  const channel = new BroadcastChannel(name)
  const post = (message: Message): void => channel.postMessage(message)
  const given = new AbortController()
  let source: HintSource | null = null
  let isFirst = true
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.kind === 'topic') follow(data.topic)
    else if (data.kind === 'asks') {
      if (source !== null) post({ kind: 'state', isOpen: streamState.get() === 'open' })
    } else {
      isFirst = false
      streamState.set(data.isOpen ? 'open' : 'gone')
    }
  }
  post({ kind: 'asks' })
  const hold = (): Promise<void> =>
    new Promise(resolve => {
      source = new HintSource(
        {
          onTopic(topic) {
            follow(topic)
            post({ kind: 'topic', topic })
          },
          onState(isOpen) {
            streamState.set(isOpen ? 'open' : 'gone')
            post({ kind: 'state', isOpen })
          },
        },
        isFirst,
      )
      source.start()
      given.signal.addEventListener('abort', () => resolve())
    })
  navigator.locks.request(name, { signal: given.signal }, hold).catch(() => undefined)
  return () => {
    source?.stop()
    given.abort()
    channel.close()
  }
}

function followWhileVisible(): () => void {
  let source: HintSource | null = null
  let isFirst = true
  const look = (): void => {
    if (document.visibilityState === 'visible' && source === null) {
      source = new HintSource({ onTopic: follow, onState: isOpen => streamState.set(isOpen ? 'open' : 'gone') }, isFirst)
      isFirst = false
      source.start()
    } else if (document.visibilityState === 'hidden') {
      source?.stop()
      source = null
    }
  }
  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    document.removeEventListener('visibilitychange', look)
    source?.stop()
  }
}
