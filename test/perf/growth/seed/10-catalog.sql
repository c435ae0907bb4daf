-- 20,000 historic model prices, valid from days before today.

insert into llm_price (vendor, model_id, valid_from, input, output)
select vendor, model_id, current_date - 1 - day, 1 + day % 5, 2 + day % 7
from llm_model, generate_series(1, 1 + growth.size(20000) / (select count(*)::int from llm_model)) day
on conflict do nothing;
