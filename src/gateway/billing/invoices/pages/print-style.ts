/** The style of pages that are printed. */
export const printStyle = `
:root { color-scheme: light; --ink: #14171f; --soft: #565d6b; --line: #d5d9e0; --tint: #f5f6f8; }
* { box-sizing: border-box; }
html { font: 15px/1.5 "Inter", "Segoe UI", "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, "Nirmala UI", "Noto Sans Devanagari", "Kohinoor Devanagari", sans-serif; color: var(--ink); background: #e9ebef; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; padding: 2rem 1rem; }
.sheet { display: flex; flex-direction: column; max-width: 210mm; min-height: 280mm; margin: 0 auto; padding: 16mm 17mm 14mm; background: #fff; border-radius: 3px; box-shadow: 0 1px 2px rgb(20 23 31 / .12), 0 8px 28px rgb(20 23 31 / .08); overflow-wrap: anywhere; }
h1, h2, p, dl, dd, address { margin: 0; font-style: normal; }
bdi { unicode-bidi: isolate; }
a { color: inherit; }
.top { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1.5rem 2.5rem; align-items: start; padding-bottom: 1.4rem; border-bottom: 2px solid var(--ink); }
.seller strong { display: block; font-size: 1.3rem; line-height: 1.25; letter-spacing: -.01em; margin-bottom: .35rem; }
.seller, .party { font-size: .93rem; line-height: 1.45; }
.kind { text-align: right; }
h1 { font-size: 1.85rem; line-height: 1.1; font-weight: 600; letter-spacing: -.02em; }
.kind p { margin-top: .4rem; }
.mark { color: var(--soft); font-size: .75rem; letter-spacing: .07em; text-transform: uppercase; }
dt, h2, th { color: var(--soft); font-size: .75rem; line-height: 1.4; font-weight: 600; letter-spacing: .05em; text-transform: uppercase; }
dd, td { font-variant-numeric: tabular-nums lining-nums; }
.facts { display: grid; grid-template-columns: repeat(4, minmax(0, auto)); justify-content: space-between; gap: 1rem 2rem; padding: 1.1rem 0; border-bottom: 1px solid var(--line); }
.facts dd { font-weight: 500; margin-top: .1rem; }
.parties { display: grid; grid-template-columns: minmax(0, 1.7fr) minmax(0, 1fr); gap: 1.25rem 2.5rem; padding: 1.3rem 0 1.5rem; }
.parties h2 { margin-bottom: .3rem; }
.party strong { display: block; font-size: 1.02rem; line-height: 1.35; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; padding: .5rem .75rem; background: var(--tint); border-bottom: 1px solid var(--line); }
td { padding: .8rem .75rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th, td { overflow-wrap: break-word; }
.code, td.amount { white-space: nowrap; }
.amount { text-align: right; }
.sums { display: grid; grid-template-columns: minmax(0, 1fr) minmax(15rem, 19rem); gap: 1.5rem 2.5rem; padding-top: 1.1rem; }
.sums dl div { display: flex; justify-content: space-between; gap: 1.5rem; padding: .3rem .75rem; }
.sums dl dt { all: unset; }
.sums dl dd { white-space: nowrap; }
.sums .total { margin-top: .4rem; padding: .65rem .75rem; background: var(--tint); border-top: 2px solid var(--ink); font-size: 1.12rem; font-weight: 600; }
.words p { margin-top: .2rem; font-weight: 500; }
.words h2 + p + h2 { margin-top: 1rem; }
.paid { padding: 1.6rem 0 1.3rem; border-bottom: 1px solid var(--line); }
.paid p { margin-top: .15rem; }
.paid .figure { font-size: 2.4rem; line-height: 1.2; font-weight: 600; letter-spacing: -.02em; font-variant-numeric: tabular-nums lining-nums; }
.table { border-bottom: 0; }
.table div { display: grid; grid-template-columns: 12rem minmax(0, 1fr); gap: 1rem; padding: .6rem 0; border-bottom: 1px solid var(--line); }
.table dt { padding-top: .15em; }
.foot { margin-top: auto; padding-top: 1.6rem; color: var(--soft); font-size: .8rem; line-height: 1.5; }
.foot p { padding-top: .7rem; border-top: 1px solid var(--line); }
.foot p + p { padding-top: .2rem; border-top: 0; }
@media screen and (max-width: 44rem) {
  body { padding: 0; }
  html { background: #fff; }
  .sheet { min-height: 0; padding: 1.4rem 1.15rem 2rem; border-radius: 0; box-shadow: none; }
  .top, .parties, .sums { grid-template-columns: minmax(0, 1fr); }
  .kind { text-align: left; grid-row: 1; }
  .facts { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .9rem 1.25rem; }
  .facts div:nth-child(3) { grid-column: 1 / -1; }
  .table div { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .sums .words { grid-row: 2; }
  th, td { padding-left: .5rem; padding-right: .5rem; }
  .sums dl div, .sums .total { padding-left: .5rem; padding-right: .5rem; }
}
@page { size: A4 portrait; margin: 15mm 16mm; }
@media print {
  html { font-size: 9.8pt; background: #fff; }
  body { padding: 0; }
  .sheet { max-width: none; min-height: 262mm; padding: 0; border-radius: 0; box-shadow: none; }
  .top, .facts, .parties, .sums, .paid, table, tr, .foot { break-inside: avoid; }
  th, .total { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`
