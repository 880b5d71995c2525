import { Copy } from '../forms/copy.tsx'

/** Text for a terminal or a file, with a button that copies it. */
export function Code({ text, label }: { readonly text: string; readonly label?: string }) {
  return (
    <div className="code">
      {label && <p className="code-label">{label}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must take the focus, so that keys can scroll it. */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <Copy text={text} label="Copy" />
    </div>
  )
}

const headLength = 10
const tailLength = 4

/** A long name with its middle left out. The tooltip has all of it. */
export function MiddleCut({ text, max = 32 }: { readonly text: string; readonly max?: number }) {
  if (text.length <= max) return <span>{text}</span>
  const tail = Math.max(tailLength, Math.floor(max / 3))
  return <span title={text}>{`${text.slice(0, Math.max(headLength, max - tail - 1))}…${text.slice(-tail)}`}</span>
}
