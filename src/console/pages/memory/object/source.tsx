import { useEffect, useRef } from 'react'
import { text } from '../text.ts'

/** Lines that are drawn. They begin some lines before the one that the address names. */
const linesMax = 3_000
const linesBefore = 200
/** Characters of a line that are drawn. */
const lineCharsMax = 4_000

/** A text as it is written, with the numbers of its lines. `line` is marked and comes into view. */
export function Source({ content, line }: { readonly content: string; readonly line: number | null }) {
  const marked = useRef<HTMLSpanElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another line comes into view.
  useEffect(() => {
    // The call returns a promise in some browsers, which is no clean-up.
    void marked.current?.scrollIntoView({ block: 'center' })
  }, [line])
  const lines = content.split('\n')
  const start = line !== null && lines.length > linesMax ? Math.max(0, Math.min(line - linesBefore, lines.length - linesMax)) : 0
  const shown = lines.slice(start, start + linesMax)
  const digits = String(start + shown.length).length
  return (
    <>
      {shown.length < lines.length && <p className="memory-note quiet">{text.cutSource(start + 1, start + shown.length, lines.length)}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must take the focus, so that keys can scroll it. */}
      <pre className="memory-source" tabIndex={0} style={{ counterReset: `line ${start}`, ['--digits' as string]: digits }}>
        <code>
          {shown.map((one, place) => {
            const isMarked = start + place + 1 === line
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: a line has no other name than its number.
              <span key={start + place} ref={isMarked ? marked : null} className={isMarked ? 'memory-line memory-line-marked' : 'memory-line'}>
                {one.length > lineCharsMax ? `${one.slice(0, lineCharsMax)}…` : one}
                {'\n'}
              </span>
            )
          })}
        </code>
      </pre>
    </>
  )
}
