import { statement } from '../../platform/db.ts'

/** Who is told of payments: the active owners, and the address for bills unless it is one of theirs. `reader` names them in keys. */
export const receiptReaders = statement<[orgId: number], { email: string; reader: string; orgName: string }>(
  'billing.receipt_readers',
  `with owners as materialized (
     select u.id, u.email from users u join org_members m on m.user_id = u.id
     where m.org_id = $1::int and m.role = 'owner' and m.status = 'active')
   select r.email as "email", r.reader as "reader", o.name as "orgName"
   from orgs o, (
     select email, id::text as reader from owners
     union all
     select b.billing_email, 'bills' from billing_accounts b
     where b.org_id = $1::int and b.billing_email is not null
       and not exists (select 1 from owners where lower(owners.email) = lower(b.billing_email))) r
   where o.id = $1::int
   order by r.reader`,
)
