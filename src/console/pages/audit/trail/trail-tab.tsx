import type { ReactNode } from 'react'
import { useMe } from '../../../app/me.tsx'
import type { Column } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { VirtualTable } from '../../../ui/data/virtual-table.tsx'
import { download } from '../../../ui/format/download.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import type { AuditFilters, AuditSearch } from '../search.ts'
import { text } from '../text.ts'
import { type AuditLine, useAudit } from '../use-audit.ts'
import { ActOutcome } from './act-outcome.tsx'
import { AuditFilterBar } from './audit-filters.tsx'
import { LinePeek } from './line-peek.tsx'
import { actorText, actText, csvOf } from './sentences.ts'

const columnsOf = (ownId: number | null): readonly Column<AuditLine>[] => [
  {
    key: 'what',
    head: text.columns.what,
    isName: true,
    cell: line => (
      <span className="audit-sentence">
        <strong>{actorText(line.actor, ownId)}</strong> {actText(line)}
      </span>
    ),
  },
  { key: 'outcome', head: text.columns.outcome, cell: line => <ActOutcome outcome={line.outcome} /> },
  {
    key: 'address',
    head: text.columns.address,
    isOnCards: false,
    cell: ({ source_ip: ip }) => (ip === null ? <span className="quiet">–</span> : <code>{ip}</code>),
  },
  { key: 'time', head: text.columns.time, align: 'end', cell: ({ at }) => <Time at={at} /> },
]

interface TrailTabProps {
  readonly search: AuditSearch
  readonly onShow: (search: AuditSearch) => void
}

/** The lines of the trail as sentences, the newest first. */
export function TrailTab({ search, onShow }: TrailTabProps) {
  const { tab: _, line: openLine, ...filters } = search
  const ownId = useMe().user.id
  const lines = useAudit(filters)
  const filter = (changes: { [K in keyof AuditFilters]?: AuditFilters[K] | undefined }): void => onShow(withoutEmpty({ ...filters, ...changes }))
  const isFiltered = Object.keys(filters).length > 0
  return (
    <>
      <div className="audit-bar">
        <AuditFilterBar value={filters} onChange={filter} />
        <Button
          icon="download"
          title={text.csvAbout}
          disabled={(lines.data ?? []).length === 0}
          onClick={() => download('audit.csv', 'text/csv', csvOf(lines.data ?? [], ownId))}
        >
          {text.csv}
        </Button>
      </div>
      <Panel isFlush>
        <Loaded query={lines} skeleton={<Skeleton lines={6} height={28} />}>
          {rows =>
            rows.length === 0 ? (
              <None
                isFiltered={isFiltered}
                action={
                  lines.hasNextPage ? (
                    <Button isBusy={lines.isFetchingNextPage} onClick={() => void lines.fetchNextPage()}>
                      {text.go}
                    </Button>
                  ) : (
                    isFiltered && <Button onClick={() => onShow({})}>{text.clear}</Button>
                  )
                }
                hint={lines.hasNextPage ? text.nonePage : text.noneHint}
              />
            ) : (
              <VirtualTable
                label={text.tabs.trail}
                columns={columnsOf(ownId)}
                rows={rows}
                rowKey={({ id }) => id}
                onOpen={({ id }) => onShow({ ...filters, line: id })}
                isOpen={({ id }) => id === openLine}
                onMore={lines.hasNextPage ? () => void lines.fetchNextPage() : null}
                isLoadingMore={lines.isFetchingNextPage}
              />
            )
          }
        </Loaded>
      </Panel>
      {openLine !== undefined && lines.data && (
        <LinePeek key={openLine} line={lines.data.find(({ id }) => id === openLine) ?? null} onFilter={onShow} onClose={() => onShow(filters)} />
      )}
    </>
  )
}

const withoutEmpty = (filters: { [K in keyof AuditFilters]?: AuditFilters[K] | undefined }): AuditFilters =>
  Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined))

function None({ isFiltered, action, hint }: { readonly isFiltered: boolean; readonly action: ReactNode; readonly hint: string }) {
  return isFiltered ? (
    <Empty icon="search" title={text.none} action={action}>
      {hint}
    </Empty>
  ) : (
    <Empty icon="list" title={text.emptyTitle} action={action}>
      {text.empty}
    </Empty>
  )
}
