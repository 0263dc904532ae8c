"""What answers and their terminators have in common, for the compressor to refer to.

Every compressed text of the app table needs it, byte for byte, to be read: it never changes. The
likeliest stands last.
"""

DICTIONARY = (
    b'"LLM_UNAVAILABLE","message":"","interrupt_id":"","node":"clarify","clarification":'
    b'{"question":"Which of these do you mean?","options":[],"assumptions":[],"suggestions":['
    b'"kept_through_id":null,"kind":"paused","kind":"failed","code":"'
    b'"finish_reason":"timeout","cancelled","disconnected","finish_reason":"error",'
    b'"error_code":null,"model":"extractive","message_id":"","finish_reason":"stop",'
    b'"grounding_warnings":["weak_evidence","unknown_paths","unknown_symbols","uncited_answer",'
    b'"no_context"],"intent":"conversational","intent":"out_of_scope",'
    b'"intent":"codebase_question","retrieval_attempts":1,"degraded":["classify","grade"],'
    b" the  of  and  to  in  is  that  for  it  with  as  are  this  by  be  from  which  function"
    b"  class  method  module  file  returns  called  default  value  import  self. def  `. In `"
    b'\\n\\n```python\\n\\n- **","language":"markdown","language":"typescript",'
    b'"language":"python","symbol":"","commit_sha":"","url":null,"cited":false},'
    b'{"cited_indexes":[1,2,3],"kind":"done","citations":[{"index":1,"file_path":"src/.py",'
    b'"start_line":1,"end_line":2,"language":"python","symbol":null,"commit_sha":null,'
    b'"score":0.","url":"https://github.com/","cited":true},{"index":'
)
