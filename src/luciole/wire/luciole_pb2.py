"""Generated from luciole/wire/luciole.proto by scripts/generate_wire.py: do not edit."""

from google.protobuf import descriptor_pool, message_factory

DESCRIPTOR = descriptor_pool.DescriptorPool().AddSerializedFile(
    b'\n\x1aluciole/wire/luciole.proto\x12\x0fluciole.wire.v1"=\n\x05Frame\x124\n\x08me'
    b'ssages\x18\x01 \x03(\x0b2\x18.luciole.wire.v1.MessageR\x08messages"\xbc\x05\n\x07Message'
    b'\x12.\n\x05hello\x18\x01 \x01(\x0b2\x16.luciole.wire.v1.HelloH\x00R\x05hello\x124\n\x07welcome\x18'
    b'\x02 \x01(\x0b2\x18.luciole.wire.v1.WelcomeH\x00R\x07welcome\x121\n\x06refuse\x18\x03 \x01(\x0b2\x17'
    b'.luciole.wire.v1.RefuseH\x00R\x06refuse\x12.\n\x05grant\x18\x04 \x01(\x0b2\x16.luciole.w'
    b'ire.v1.GrantH\x00R\x05grant\x124\n\x07deliver\x18\x05 \x01(\x0b2\x18.luciole.wire.v1.Del'
    b'iverH\x00R\x07deliver\x12;\n\x0backnowledge\x18\x06 \x01(\x0b2\x17.luciole.wire.v1.Token'
    b'sH\x00R\x0backnowledge\x124\n\x07reports\x18\x07 \x01(\x0b2\x18.luciole.wire.v1.ReportsH'
    b'\x00R\x07reports\x124\n\x07confirm\x18\x08 \x01(\x0b2\x18.luciole.wire.v1.ConfirmH\x00R\x07con'
    b'firm\x12+\n\x04beat\x18\t \x01(\x0b2\x15.luciole.wire.v1.BeatH\x00R\x04beat\x12>\n\x0bbeat_an'
    b'swer\x18\n \x01(\x0b2\x1b.luciole.wire.v1.BeatAnswerH\x00R\nbeatAnswer\x121\n\x06can'
    b'cel\x18\x0b \x01(\x0b2\x17.luciole.wire.v1.CancelH\x00R\x06cancel\x121\n\x06demand\x18\x0c \x01(\x0b'
    b'2\x17.luciole.wire.v1.DemandH\x00R\x06demand\x12.\n\x05drain\x18\r \x01(\x0b2\x16.luciole'
    b'.wire.v1.DrainH\x00R\x05drainB\x06\n\x04kind"\x86\x01\n\x06Tokens\x12\x14\n\x05shard\x18\x01 \x03(\rR\x05s'
    b'hard\x12\x1f\n\x0bschedule_id\x18\x02 \x03(\x03R\nscheduleId\x12\x17\n\x07fire_us\x18\x03 \x03(\x12R\x06fire'
    b'Us\x12\x12\n\x04part\x18\x04 \x03(\x12R\x04part\x12\x18\n\x07attempt\x18\x05 \x03(\rR\x07attempt":\n\nTextColu'
    b'mn\x12\x16\n\x06values\x18\x01 \x03(\tR\x06values\x12\x14\n\x05index\x18\x02 \x03(\rR\x05index";\n\x0bBytesCol'
    b'umn\x12\x16\n\x06values\x18\x01 \x03(\x0cR\x06values\x12\x14\n\x05index\x18\x02 \x03(\rR\x05index"7\n\rSparseN'
    b'umbers\x12\x0e\n\x02at\x18\x01 \x03(\rR\x02at\x12\x16\n\x06values\x18\x02 \x03(\x12R\x06values"5\n\x0bSparseText'
    b's\x12\x0e\n\x02at\x18\x01 \x03(\rR\x02at\x12\x16\n\x06values\x18\x02 \x03(\tR\x06values"5\n\x0bSparseBytes\x12\x0e\n\x02'
    b'at\x18\x01 \x03(\rR\x02at\x12\x16\n\x06values\x18\x02 \x03(\x0cR\x06values"1\n\x05Label\x12\x12\n\x04name\x18\x01 \x01(\tR'
    b'\x04name\x12\x14\n\x05value\x18\x02 \x01(\tR\x05value"\xb0\x01\n\x04Held\x12/\n\x06tokens\x18\x01 \x01(\x0b2\x17.lucio'
    b'le.wire.v1.TokensR\x06tokens\x12=\n\nstarted_us\x18\x02 \x01(\x0b2\x1e.luciole.wire'
    b'.v1.SparseNumbersR\tstartedUs\x128\n\x08progress\x18\x03 \x01(\x0b2\x1c.luciole.wir'
    b'e.v1.SparseTextsR\x08progress"\xe4\x02\n\x05Hello\x12!\n\x0cprotocol_min\x18\x01 \x01(\rR\x0b'
    b'protocolMin\x12!\n\x0cprotocol_max\x18\x02 \x01(\rR\x0bprotocolMax\x12\x1f\n\x0bexecutor_i'
    b'd\x18\x03 \x01(\tR\nexecutorId\x12\x1c\n\tnamespace\x18\x04 \x01(\tR\tnamespace\x12\x1a\n\x08handler'
    b's\x18\x05 \x03(\tR\x08handlers\x12\x14\n\x05slots\x18\x06 \x01(\rR\x05slots\x12.\n\x06labels\x18\x07 \x03(\x0b2\x16.lu'
    b'ciole.wire.v1.LabelR\x06labels\x12)\n\x04held\x18\x08 \x01(\x0b2\x15.luciole.wire.v1.'
    b'HeldR\x04held\x12\x19\n\x05token\x18\t \x01(\tH\x00R\x05token\x88\x01\x01\x12\x12\n\x04host\x18\n \x01(\tR\x04host\x12\x10\n'
    b'\x03pid\x18\x0b \x01(\rR\x03pidB\x08\n\x06_token"\xbe\x01\n\x07Welcome\x12\x1a\n\x08protocol\x18\x01 \x01(\rR\x08pro'
    b'tocol\x12\x17\n\x07node_id\x18\x02 \x01(\tR\x06nodeId\x12\x15\n\x06now_us\x18\x03 \x01(\x12R\x05nowUs\x12$\n\x0eses'
    b'sion_ttl_us\x18\x04 \x01(\x03R\x0csessionTtlUs\x12\x14\n\x05peers\x18\x05 \x03(\tR\x05peers\x12+\n\x04kep'
    b't\x18\x06 \x01(\x0b2\x17.luciole.wire.v1.TokensR\x04kept"6\n\x06Refuse\x12\x12\n\x04code\x18\x01 \x01'
    b'(\tR\x04code\x12\x18\n\x07message\x18\x02 \x01(\tR\x07message"!\n\x05Grant\x12\x18\n\x07credits\x18\x01 \x01(\x12'
    b'R\x07credits"\xe2\x03\n\x07Deliver\x12/\n\x06tokens\x18\x01 \x01(\x0b2\x17.luciole.wire.v1.Toke'
    b'nsR\x06tokens\x125\n\x07handler\x18\x02 \x01(\x0b2\x1b.luciole.wire.v1.TextColumnR\x07ha'
    b'ndler\x126\n\x07payload\x18\x03 \x01(\x0b2\x1c.luciole.wire.v1.BytesColumnR\x07payloa'
    b'd\x12>\n\x0ccontent_type\x18\x04 \x01(\x0b2\x1b.luciole.wire.v1.TextColumnR\x0bconten'
    b'tType\x12$\n\x0efire_offset_us\x18\x05 \x03(\x12R\x0cfireOffsetUs\x12"\n\rdue_offset_us'
    b'\x18\x06 \x03(\x12R\x0bdueOffsetUs\x12=\n\ntimeout_us\x18\x07 \x01(\x0b2\x1e.luciole.wire.v1.Sp'
    b'arseNumbersR\ttimeoutUs\x12?\n\x0bdeadline_us\x18\x08 \x01(\x0b2\x1e.luciole.wire.v'
    b'1.SparseNumbersR\ndeadlineUs\x12-\n\x06run_in\x18\t \x03(\x0e2\x16.luciole.wire.v'
    b'1.RunInR\x05runIn"\xe2\x03\n\x07Reports\x12/\n\x06tokens\x18\x01 \x01(\x0b2\x17.luciole.wire.v1'
    b'.TokensR\x06tokens\x122\n\x07outcome\x18\x02 \x03(\x0e2\x18.luciole.wire.v1.OutcomeR\x07'
    b'outcome\x12\x1f\n\x0bfinished_us\x18\x03 \x03(\x12R\nfinishedUs\x12=\n\nstarted_us\x18\x04 \x01(\x0b'
    b'2\x1e.luciole.wire.v1.SparseNumbersR\tstartedUs\x124\n\x06result\x18\x05 \x01(\x0b2'
    b'\x1c.luciole.wire.v1.SparseBytesR\x06result\x12=\n\x0bresult_type\x18\x06 \x01(\x0b2\x1c'
    b'.luciole.wire.v1.SparseTextsR\nresultType\x122\n\x05error\x18\x07 \x01(\x0b2\x1c.lu'
    b'ciole.wire.v1.SparseTextsR\x05error\x12D\n\x0eretry_after_us\x18\x08 \x01(\x0b2\x1e.l'
    b'uciole.wire.v1.SparseNumbersR\x0cretryAfterUs\x12#\n\rnot_retryable\x18'
    b'\t \x03(\rR\x0cnotRetryable"n\n\x07Confirm\x12/\n\x06tokens\x18\x01 \x01(\x0b2\x17.luciole.wir'
    b'e.v1.TokensR\x06tokens\x122\n\x07verdict\x18\x02 \x03(\x0e2\x18.luciole.wire.v1.Verdi'
    b'ctR\x07verdict"I\n\x04Beat\x12)\n\x04held\x18\x01 \x01(\x0b2\x15.luciole.wire.v1.HeldR\x04he'
    b'ld\x12\x16\n\x06number\x18\x02 \x01(\rR\x06number"~\n\nBeatAnswer\x12\x15\n\x06now_us\x18\x01 \x01(\x12R\x05no'
    b'wUs\x12\x14\n\x05peers\x18\x02 \x03(\tR\x05peers\x12+\n\x04kept\x18\x03 \x01(\x0b2\x17.luciole.wire.v1.To'
    b'kensR\x04kept\x12\x16\n\x06number\x18\x04 \x01(\rR\x06number"e\n\x06Cancel\x12/\n\x06tokens\x18\x01 \x01(\x0b'
    b'2\x17.luciole.wire.v1.TokensR\x06tokens\x12\x16\n\x06reason\x18\x02 \x01(\tR\x06reason\x12\x12\n'
    b'\x04hard\x18\x03 \x01(\x08R\x04hard":\n\x06Demand\x12\x18\n\x07waiting\x18\x01 \x01(\x03R\x07waiting\x12\x16\n\x06unu'
    b'sed\x18\x02 \x01(\x03R\x06unused""\n\x05Drain\x12\x19\n\x08grace_us\x18\x01 \x01(\x03R\x07graceUs*R\n\x05Run'
    b'In\x12\x10\n\x0cRUN_IN_UNSET\x10\x00\x12\x10\n\x0cRUN_IN_ASYNC\x10\x01\x12\x11\n\rRUN_IN_THREAD\x10\x02\x12\x12\n'
    b'\x0eRUN_IN_PROCESS\x10\x03*\xba\x01\n\x07Outcome\x12\x11\n\rOUTCOME_UNSET\x10\x00\x12\x15\n\x11OUTCOME_'
    b'SUCCEEDED\x10\x01\x12\x12\n\x0eOUTCOME_FAILED\x10\x02\x12\x15\n\x11OUTCOME_TIMED_OUT\x10\x03\x12\x15\n\x11OU'
    b'TCOME_CANCELLED\x10\x04\x12\x10\n\x0cOUTCOME_LOST\x10\x05\x12\x14\n\x10OUTCOME_RETURNED\x10\x06\x12\x1b\n'
    b'\x17OUTCOME_UNKNOWN_HANDLER\x10\x07*Y\n\x07Verdict\x12\x11\n\rVERDICT_UNSET\x10\x00\x12\x13\n\x0f'
    b'VERDICT_DURABLE\x10\x01\x12\x11\n\rVERDICT_STALE\x10\x02\x12\x13\n\x0fVERDICT_INVALID\x10\x032H\n'
    b'\x07Gateway\x12=\n\x07Session\x12\x16.luciole.wire.v1.Frame\x1a\x16.luciole.wire.v'
    b'1.Frame(\x010\x01b\x06proto3'
)

Frame = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Frame"])
Message = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Message"])
Tokens = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Tokens"])
TextColumn = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["TextColumn"])
BytesColumn = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["BytesColumn"])
SparseNumbers = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["SparseNumbers"])
SparseTexts = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["SparseTexts"])
SparseBytes = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["SparseBytes"])
Label = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Label"])
Held = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Held"])
Hello = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Hello"])
Welcome = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Welcome"])
Refuse = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Refuse"])
Grant = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Grant"])
Deliver = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Deliver"])
Reports = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Reports"])
Confirm = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Confirm"])
Beat = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Beat"])
BeatAnswer = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["BeatAnswer"])
Cancel = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Cancel"])
Demand = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Demand"])
Drain = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["Drain"])
