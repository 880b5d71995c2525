import { useQuery } from '@tanstack/react-query'
import { addressOf, type ReplyOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { MiddleCut } from '../../ui/data/code.tsx'
import { type Column, Table } from '../../ui/data/table.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Fold } from '../../ui/forms/choices.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Downloads } from './downloads.tsx'
import type { DocumentWindow } from './search.ts'
import { text } from './text.ts'

type Dpia = ReplyOf<'dpia'>
/** The page shows so many models and processors, the most used ones. The documents have all. */
const shownMax = 50

const models: readonly Column<Dpia['models'][number]>[] = [
  { key: 'model', head: text.dpia.columns.model, isName: true, cell: ({ model }) => <MiddleCut text={model} max={36} /> },
  { key: 'purpose', head: text.dpia.columns.purpose, cell: ({ purpose }) => purpose },
  { key: 'openness', head: text.dpia.columns.openness, isOnCards: false, cell: ({ openness }) => openness },
  { key: 'calls', head: text.dpia.columns.calls, align: 'end', cell: ({ requests }) => count(requests) },
  { key: 'india', head: text.dpia.columns.india, align: 'end', cell: ({ residency }) => `${residency.india.pct} %` },
]

const providers: readonly Column<Dpia['providers'][number]>[] = [
  {
    key: 'provider',
    head: text.dpia.columns.provider,
    isName: true,
    cell: ({ name, own }) => (
      <>
        <MiddleCut text={name} max={36} />
        {own && <span className="quiet"> · {text.dpia.own}</span>}
      </>
    ),
  },
  { key: 'calls', head: text.dpia.columns.calls, align: 'end', cell: ({ requests }) => count(requests) },
  { key: 'india', head: text.dpia.columns.india, align: 'end', cell: ({ residency }) => `${residency.india.pct} %` },
]

/** The data-protection impact assessment: models, processors, and what is kept. */
export function DpiaPanels({ window }: { readonly window: DocumentWindow }) {
  const dpia = useQuery(apiQuery('dpia', { query: { window } }))
  const downloads = (
    <Downloads name="dpia" json={addressOf('dpia', { query: { window } })} report={addressOf('dpia', { query: { window, format: 'report' } })} />
  )
  return (
    <>
      <Panel title={text.dpia.title} actions={downloads}>
        <Loaded query={dpia} skeleton={<Skeleton lines={6} height={28} />}>
          {data => <Kept dpia={data} />}
        </Loaded>
      </Panel>
      {dpia.data && dpia.data.models.length > 0 && (
        <div className="compliance-columns">
          <Panel title={text.dpia.models} isFlush>
            <Table
              label={text.dpia.models}
              columns={models}
              rows={dpia.data.models.slice(0, shownMax)}
              rowKey={({ model, purpose }) => `${model} ${purpose}`}
            />
          </Panel>
          <Panel title={text.dpia.providers} isFlush>
            <Table label={text.dpia.providers} columns={providers} rows={dpia.data.providers.slice(0, shownMax)} rowKey={({ provider }) => provider} />
          </Panel>
        </div>
      )}
    </>
  )
}

function Kept({ dpia }: { readonly dpia: Dpia }) {
  const { content_retention: content, usage_records: usage, memory, other_records: other } = dpia
  const parts = [
    { title: text.dpia.content, lines: [content.stored, `${text.dpia.where} ${content.where}`, `${text.dpia.readers} ${content.readable_by}`] },
    { title: `${text.dpia.usage} · ${text.dpia.days(usage.kept_days)}`, lines: [usage.stored] },
    { title: `${text.dpia.memory} · ${memory.store ?? text.dpia.noStore}`, lines: [memory.stored] },
  ]
  return (
    <div className="stack-5">
      <h3 className="compliance-head">{text.dpia.kept}</h3>
      {parts.map(({ title, lines }) => (
        <Part key={title} title={title} lines={lines} />
      ))}
      <Fold title={text.dpia.more}>
        {other.map(({ what, stored, kept }) => (
          <Part key={what} title={what} lines={[stored, kept]} />
        ))}
      </Fold>
    </div>
  )
}

function Part({ title, lines }: { readonly title: string; readonly lines: readonly string[] }) {
  return (
    <section className="compliance-part">
      <h4>{title}</h4>
      {lines.map(line => (
        <p key={line}>{line}</p>
      ))}
    </section>
  )
}
