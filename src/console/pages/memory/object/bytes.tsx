import { bytesText } from '../../../ui/format/numbers.ts'
import { Icon } from '../../../ui/icon.tsx'
import { text } from '../text.ts'
import { bytesAddress, type MemoryObject } from '../use-memory.ts'

const shownBytes = 256
const rowBytes = 16

/** An object that is not text: how it begins, and a way to save it. */
export function Bytes({ object: { key, bytes } }: { readonly object: MemoryObject }) {
  return (
    <div className="memory-bytes">
      <div>
        <p className="empty-title">{text.notText}</p>
        <p className="quiet">{text.notTextAbout(bytes.length)}</p>
      </div>
      <a className="button button-plain button-md" href={bytesAddress(key)} download>
        <Icon name="download" />
        {text.download}
      </a>
      <div className="code">
        <p className="code-label">
          {text.firstBytes} ({bytesText(Math.min(bytes.length, shownBytes))})
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must take the focus, so that keys can scroll it. */}
        <pre tabIndex={0}>{hexOf(bytes)}</pre>
      </div>
    </div>
  )
}

/** Returns the first bytes in the form of a dump: place, values, and the characters that can be printed. */
function hexOf(bytes: Uint8Array): string {
  const rows: string[] = []
  for (let at = 0; at < Math.min(bytes.length, shownBytes); at += rowBytes) {
    const row = [...bytes.subarray(at, Math.min(at + rowBytes, shownBytes))]
    const values = row.map(value => value.toString(16).padStart(2, '0')).join(' ')
    const letters = row.map(value => (value >= 0x20 && value < 0x7f ? String.fromCharCode(value) : '·')).join('')
    rows.push(`${at.toString(16).padStart(4, '0')}  ${values.padEnd(rowBytes * 3 - 1)}  ${letters}`)
  }
  return rows.join('\n')
}
