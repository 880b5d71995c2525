import { Code } from '../../ui/data/code.tsx'

interface Part {
  readonly kind: 'prose' | 'code'
  readonly text: string
}

const fence = /^ {0,3}```[^\n`]*$/

/** Splits an answer at the fences of its code. Code whose end has not arrived yet is code, too. */
export function partsOf(answer: string): Part[] {
  const parts: Part[] = []
  let lines: string[] = []
  let isCode = false
  const close = (kind: Part['kind']): void => {
    const text = lines.join('\n')
    if (text.trim() !== '') parts.push({ kind, text: kind === 'code' ? text : text.replace(/^\n+|\n+$/g, '') })
    lines = []
  }
  for (const line of answer.split('\n')) {
    if (!fence.test(line)) {
      lines.push(line)
      continue
    }
    close(isCode ? 'code' : 'prose')
    isCode = !isCode
  }
  close(isCode ? 'code' : 'prose')
  return parts
}

/** The text of an answer. It is shown as it is, and code gets a button that copies it. */
export function AnswerText({ text }: { readonly text: string }) {
  return (
    <div className="play-text">
      {partsOf(text).map((part, index) =>
        part.kind === 'code' ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts are only added at the end.
          <Code key={index} text={part.text} />
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts are only added at the end.
          <p key={index}>{part.text}</p>
        ),
      )}
    </div>
  )
}
