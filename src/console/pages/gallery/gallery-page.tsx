import { useState } from 'react'
import { ApiError } from '../../api/api-error.ts'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { Spark } from '../../ui/charts/spark.tsx'
import { StackedBars } from '../../ui/charts/stacked-bars.tsx'
import { Code, MiddleCut } from '../../ui/data/code.tsx'
import { Money } from '../../ui/data/money.tsx'
import { Status, Tag } from '../../ui/data/status.tsx'
import { Table } from '../../ui/data/table.tsx'
import { Time } from '../../ui/data/time.tsx'
import { Tree } from '../../ui/data/tree.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { Button, IconButton, Kbd } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { ErrorPanel, InlineError } from '../../ui/layout/error-panel.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Tabs } from '../../ui/layout/tabs.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { GalleryForms } from './gallery-forms.tsx'
import { days, failure, manyRows, nodes, rows, series } from './samples.ts'

/** Every part of ui/ in its states, with invented data. Tests look at it in both themes, and a new page begins with a look at it. */
export function GalleryPage() {
  return (
    <Page
      title="Gallery"
      intro="Every part that pages are made of."
      actions={
        <>
          <Button onClick={() => toast('Saved.')}>Show a message</Button>
          <Button look="primary" icon="plus">
            New thing
          </Button>
        </>
      }
    >
      <Panel title="Buttons and words">
        <div className="stack-3">
          <div className="gallery-row">
            <Button>Plain</Button>
            <Button look="primary">Primary</Button>
            <Button look="danger">Danger</Button>
            <Button look="ghost">Ghost</Button>
            <Button isBusy>Busy</Button>
            <Button disabled>Off</Button>
            <IconButton icon="settings" label="Settings" />
            <Kbd>Ctrl K</Kbd>
          </div>
          <div className="gallery-row">
            <Status tone="good">Active</Status>
            <Status tone="warn">Ends soon</Status>
            <Status tone="bad">Revoked</Status>
            <Status tone="quiet">Disabled</Status>
            <Tag>strict</Tag>
            <Money inr={1234567.891} />
            <Money inr={0.00176} />
            <Money inr={1234567.891} isShort />
            <Time at="2026-11-01T10:00:00Z" />
            <Time at={null} />
            <MiddleCut text="a-very-long-name-of-a-key-that-a-program-has-made" />
          </div>
        </div>
      </Panel>
      <GalleryForms />
      <div className="columns-2">
        <Panel title="Budgets">
          <div className="stack-5">
            <BudgetBar capInr={500} spentInr={120} heldInr={40} inDoubtInr={20} />
            <BudgetBar capInr={500} spentInr={430} heldInr={20} />
            <BudgetBar capInr={500} spentInr={512} />
            <BudgetBar capInr={null} spentInr={98765.4} />
            <Spark values={[1, 4, 2, 8, 6, 9]} />
          </div>
        </Panel>
        <Panel title="Tree">
          <GalleryTree />
        </Panel>
      </div>
      <Panel title="Bars">
        <StackedBars label="Spend" days={days} series={series} format={value => `₹${value.toFixed(0)}`} />
      </Panel>
      <Panel title="Table" isFlush>
        <Table
          label="Things"
          rowKey={({ id }) => id}
          rows={rows}
          columns={[
            { key: 'name', head: 'Name', isName: true, cell: ({ name }) => name },
            { key: 'inr', head: 'Value', align: 'end', cell: ({ inr }) => <Money inr={inr} /> },
          ]}
          onOpen={({ name }) => toast(name)}
        />
      </Panel>
      <div className="columns-2">
        <Panel title="Empty">
          <Empty icon="agent" title="No agents yet" action={<Button look="primary">New agent</Button>} command="npx brigade agents create reviewer">
            Agents are identities for your programs.
          </Empty>
        </Panel>
        <Panel title="Errors and loading">
          <div className="stack-5">
            <ErrorPanel error={failure} onRetry={() => undefined} />
            <InlineError error={new ApiError('A key of this name exists.', { status: 409, code: 'duplicate_key_name' })} />
            <div data-sample>
              <Skeleton lines={3} />
            </div>
          </div>
        </Panel>
      </div>
      <GalleryTabs />
      <Panel title="Long table" isFlush>
        <VirtualTable
          label="Many things"
          rowKey={({ id }) => id}
          rows={manyRows}
          columns={[
            { key: 'name', head: 'Name', isName: true, cell: ({ name }) => name },
            { key: 'inr', head: 'Value', align: 'end', cell: ({ inr }) => <Money inr={inr} /> },
          ]}
          onMore={null}
          isLoadingMore={false}
        />
      </Panel>
    </Page>
  )
}

function GalleryTree() {
  const [selected, setSelected] = useState<string | null>('team')
  return <Tree label="Places" nodes={nodes} selected={selected} onSelect={setSelected} />
}

function GalleryTabs() {
  const [tab, setTab] = useState('one')
  return (
    <Panel title="Tabs and code">
      <Tabs
        label="Samples"
        value={tab}
        onChange={setTab}
        tabs={[
          { id: 'one', label: 'One' },
          { id: 'two', label: 'Two' },
        ]}
      >
        <Code text={tab === 'one' ? 'npx brigade connect codex --write' : 'curl http://127.0.0.1:8787/v1/models'} />
      </Tabs>
    </Panel>
  )
}
