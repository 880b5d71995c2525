import { MiddleCut } from '../../../../ui/data/code.tsx'
import { Money } from '../../../../ui/data/money.tsx'
import { Status } from '../../../../ui/data/status.tsx'
import type { Column } from '../../../../ui/data/table.tsx'
import { VirtualTable } from '../../../../ui/data/virtual-table.tsx'
import { Button } from '../../../../ui/forms/button.tsx'
import { Segmented } from '../../../../ui/forms/choices.tsx'
import { SearchBox } from '../../../../ui/forms/list-filters.tsx'
import { Empty } from '../../../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../../ui/layout/skeleton.tsx'
import { text } from './text.ts'
import type { JudgedTool, Shown, useToolPreview } from './use-agent-tools.ts'

interface ToolPreviewProps {
  readonly preview: ReturnType<typeof useToolPreview>
  readonly shown: Shown
  readonly q: string
  readonly onShown: (shown: Shown) => void
  readonly onSearch: (q: string) => void
  readonly patterns: readonly string[]
  /** Changes the patterns of the form. Null for a person who may not. */
  readonly onPatterns: ((patterns: readonly string[]) => void) | null
  /** True while the form differs from the rule of the agent. */
  readonly isPreview: boolean
}

/** The tools of a rule, each with the pattern that matches it and with the agent above that stops it. */
export function ToolPreview({ preview, shown, q, onShown, onSearch, patterns, onPatterns, isPreview }: ToolPreviewProps) {
  return (
    <>
      <search className="list-filters">
        <Segmented
          label={text.shown}
          value={shown}
          options={[
            { value: 'matched', label: text.shows.matched },
            { value: 'all', label: text.shows.all },
          ]}
          onChange={onShown}
        />
        <SearchBox label={text.search} hint={text.searchHint} value={q} onChange={onSearch} />
      </search>
      <Panel title={isPreview ? text.preview : text.list} isFlush {...(isPreview ? { note: text.previewNote } : {})}>
        <Loaded query={preview} skeleton={<Skeleton lines={5} height={28} />}>
          {({ tools }) =>
            tools.length === 0 ? (
              <Empty icon="search" title={text.emptyTitle}>
                {shown === 'all' || q !== '' ? text.emptyAll : text.empty}
              </Empty>
            ) : (
              <div aria-busy={preview.isPlaceholderData}>
                <VirtualTable
                  label={text.list}
                  columns={columnsFor(patterns, onPatterns)}
                  rows={tools}
                  rowKey={({ name }) => name}
                  onMore={preview.hasNextPage ? () => void preview.fetchNextPage() : null}
                  isLoadingMore={preview.isFetchingNextPage}
                />
              </div>
            )
          }
        </Loaded>
      </Panel>
    </>
  )
}

function Verdict({ tool: { pattern, stopped_by: above } }: { readonly tool: JudgedTool }) {
  if (pattern === null)
    return (
      <Status tone="quiet" icon="close">
        {text.no}
      </Status>
    )
  if (above === null) return <Status tone="good">{text.yes}</Status>
  return (
    <Status tone="warn" title={text.stoppedMeans(above.name)}>
      {text.stopped(above.name)}
    </Status>
  )
}

function columnsFor(patterns: readonly string[], onPatterns: ToolPreviewProps['onPatterns']): readonly Column<JudgedTool>[] {
  return [
    {
      key: 'tool',
      head: text.columns.tool,
      isName: true,
      cell: ({ name, title }) => (
        <span className="cell-stack">
          <MiddleCut text={name} max={44} />
          {title !== null && (
            <span className="quiet">
              <MiddleCut text={title} max={48} />
            </span>
          )}
        </span>
      ),
    },
    { key: 'may', head: text.columns.may, cell: tool => <Verdict tool={tool} /> },
    {
      key: 'why',
      head: text.columns.why,
      isOnCards: false,
      cell: ({ pattern }) => (pattern === null ? <span className="quiet">–</span> : <code>{pattern}</code>),
    },
    {
      key: 'price',
      head: text.columns.price,
      align: 'end',
      cell: ({ price_inr: inr }) => (inr === 0 ? <span className="quiet">{text.free}</span> : <Money inr={inr} />),
    },
    ...(onPatterns === null
      ? []
      : [
          {
            key: 'acts',
            head: '',
            align: 'end' as const,
            cell: ({ name, pattern }: JudgedTool) =>
              pattern === null ? (
                <Button size="sm" aria-label={`${text.add} ${name}`} onClick={() => onPatterns([...patterns, name])}>
                  {text.add}
                </Button>
              ) : pattern === name ? (
                <Button size="sm" look="ghost" aria-label={`${text.remove} ${name}`} onClick={() => onPatterns(patterns.filter(each => each !== name))}>
                  {text.remove}
                </Button>
              ) : null,
          },
        ]),
  ]
}
