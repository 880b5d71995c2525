import { Icon } from '../../ui/icon.tsx'
import { text } from './text.ts'

interface DownloadsProps {
  /** Name of the file, without its ending. */
  readonly name: string
  readonly json: string
  readonly report: string
}

/** Links to a document as JSON and as a report. The browser follows them itself. */
export function Downloads({ name, json, report }: DownloadsProps) {
  const links = [
    { label: text.json, href: json, file: `${name}.json` },
    { label: text.markdown, href: report, file: `${name}.md` },
  ]
  return (
    <span className="compliance-line">
      {links.map(({ label, href, file }) => (
        <a key={file} href={href} download={file} className="button button-plain button-sm">
          <Icon name="download" />
          {label}
          <span className="visually-hidden"> {file}</span>
        </a>
      ))}
    </span>
  )
}
