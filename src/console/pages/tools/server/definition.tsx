import { useMemo } from 'react'
import { DiffTable } from '../../../ui/compare/diff-table.tsx'
import { Code } from '../../../ui/data/code.tsx'
import { Tag } from '../../../ui/data/status.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { Fold } from '../../../ui/forms/choices.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { text } from '../text.ts'
import { type Argument, definitionText, readDefinition } from './definition-text.ts'

/** Where the definition that the server shows differs from the approved one. */
export function DefinitionDiff({ approved, seen }: { readonly approved: unknown; readonly seen: unknown }) {
  const [before, after] = useMemo(() => [definitionText(approved), definitionText(seen)], [approved, seen])
  return <DiffTable before={before} after={after} beforeName={text.pin.before} afterName={text.pin.after} />
}

const columns: readonly Column<Argument>[] = [
  {
    key: 'name',
    head: text.pin.argumentColumns.name,
    isName: true,
    cell: ({ name, isRequired }) => (
      <span className="pin-name">
        <code>{name}</code>
        {isRequired && <Tag>{text.pin.required}</Tag>}
      </span>
    ),
  },
  { key: 'type', head: text.pin.argumentColumns.type, cell: ({ type }) => <span className="argument-text">{type}</span> },
  { key: 'about', head: text.pin.argumentColumns.about, cell: ({ about }) => <span className="argument-text">{about === '' ? '–' : about}</span> },
]

/** The definition of a tool: its texts, its arguments, and all of it as lines. */
export function Definition({ definition }: { readonly definition: unknown }) {
  const { title, description, args, hints } = useMemo(() => readDefinition(definition), [definition])
  return (
    <div className="stack-5">
      <Panel title={text.pin.definition} note={text.pin.definitionNote}>
        <div className="stack-3">
          {title !== '' && <p className="definition-title">{title}</p>}
          <p className="definition-text">{description === '' ? <span className="quiet">{text.pin.noDescription}</span> : description}</p>
          {hints.length > 0 && (
            <ul className="hints" aria-label={text.pin.hints}>
              {hints.map(([name, says]) => (
                <li key={name}>
                  <Tag>{text.pin.hintWords[name]?.[says ? 0 : 1] ?? `${name}: ${says}`}</Tag>
                </li>
              ))}
            </ul>
          )}
        </div>
      </Panel>
      <Panel title={text.pin.arguments} isFlush={args.length > 0}>
        {args.length === 0 ? (
          <p className="quiet">{text.pin.noArguments}</p>
        ) : (
          <Table label={text.pin.arguments} columns={columns} rows={args} rowKey={({ name }) => name} />
        )}
      </Panel>
      <Fold title={text.pin.whole} hint={text.pin.wholeHint}>
        <Whole definition={definition} />
      </Fold>
    </div>
  )
}

function Whole({ definition }: { readonly definition: unknown }) {
  return <Code text={useMemo(() => definitionText(definition), [definition])} />
}
